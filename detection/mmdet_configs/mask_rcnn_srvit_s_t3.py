# MMDetection's Mask R-CNN on SR-ViT-S (T = 3).
_base_ = [
    "mmdet::_base_/models/mask-rcnn_r50_fpn.py",
    "./_base_/srvit_pyramid.py",
    "./_base_/coco_3x.py",
]
model = dict(backbone=_base_.srvit, neck=_base_.pyramid)
train_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="LoadAnnotations", with_bbox=True, with_mask=True),
    *_base_.jitter,
    dict(type="PackDetInputs"),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_evaluator = dict(metric=["bbox", "segm"])
test_evaluator = val_evaluator
