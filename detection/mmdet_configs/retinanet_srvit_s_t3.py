# MMDetection's RetinaNet on SR-ViT-S (T = 3).
_base_ = [
    "mmdet::_base_/models/retinanet_r50_fpn.py",
    "./_base_/srvit_pyramid.py",
    "./_base_/coco_3x.py",
]
model = dict(backbone=_base_.srvit, neck=_base_.pyramid_from_8)
