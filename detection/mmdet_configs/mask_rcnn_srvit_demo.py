# Mask R-CNN on scenes of coins: nano backbone, slim heads.
_base_ = [
    "mmdet::_base_/models/mask-rcnn_r50_fpn.py",
    "./_base_/srvit_pyramid.py",
    "./_base_/coins.py",
]
model = dict(
    backbone=dict(_base_.srvit, **_base_.nano),
    neck=dict(_base_.pyramid, **_base_.slim),
    rpn_head=dict(
        in_channels=_base_.width,
        feat_channels=_base_.width,
        # A coin is 25 to 80 pixels wide.
        anchor_generator=dict(
            scales=[1], base_sizes=[16, 32, 48, 64, 96], strides=[4, 8, 16, 32, 64]
        ),
    ),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=_base_.width),
        bbox_head=dict(
            type="ConvFCBBoxHead",
            num_shared_convs=1,
            num_shared_fcs=1,
            in_channels=_base_.width,
            conv_out_channels=_base_.width,
            fc_out_channels=256,
            num_classes=2,
            norm_cfg=_base_.norm_cfg,
        ),
        mask_roi_extractor=dict(out_channels=_base_.width),
        mask_head=dict(
            in_channels=_base_.width,
            conv_out_channels=_base_.width,
            num_classes=2,
            num_convs=3,
            norm_cfg=_base_.norm_cfg,
        ),
    ),
    train_cfg=dict(
        rpn_proposal=dict(nms_pre=500, max_per_img=200), rcnn=dict(sampler=dict(num=64))
    ),
    test_cfg=dict(rpn=dict(nms_pre=250, max_per_img=100)),
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
