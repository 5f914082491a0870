# RetinaNet on scenes of coins: nano backbone, slim head.
_base_ = [
    "mmdet::_base_/models/retinanet_r50_fpn.py",
    "./_base_/srvit_pyramid.py",
    "./_base_/coins.py",
]
model = dict(
    backbone=dict(_base_.srvit, **_base_.nano),
    neck=dict(_base_.pyramid_from_8, **_base_.slim),
    bbox_head=dict(
        in_channels=_base_.width,
        feat_channels=_base_.width,
        num_classes=2,
        norm_cfg=_base_.norm_cfg,
        # A coin is 25 to 80 pixels wide.
        anchor_generator=dict(octave_base_scale=3, scales_per_octave=2),
    ),
)
