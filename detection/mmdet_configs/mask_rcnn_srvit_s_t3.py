# Mask R-CNN on SR-ViT-S (T = 3), the heads as ViTDet's.
_base_ = [
    "mmdet::_base_/models/mask-rcnn_r50_fpn.py",
    "./_base_/srvit_pyramid.py",
    "./_base_/coco_3x.py",
]
norm_cfg = dict(type="LN2d", eps=1e-6)
model = dict(
    backbone=_base_.srvit,
    neck=_base_.pyramid,
    rpn_head=dict(num_convs=2),
    roi_head=dict(
        bbox_head=dict(type="Shared4Conv1FCBBoxHead", conv_out_channels=256, norm_cfg=norm_cfg),
        mask_head=dict(norm_cfg=norm_cfg),
    ),
)
train_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="LoadAnnotations", with_bbox=True, with_mask=True),
    *_base_.jitter,
    dict(type="PackDetInputs"),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_evaluator = dict(metric=["bbox", "segm"])
test_evaluator = val_evaluator
