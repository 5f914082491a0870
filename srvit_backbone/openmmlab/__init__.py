"""SR-ViT in MMSegmentation and MMDetection: the backbone, layer-wise decay, ViTDet's pyramid.

All are registered in MMEngine's root registries, which the registries of mmseg and mmdet fall back
to. A config needs ``custom_imports = dict(imports=["srvit_backbone.openmmlab"])``; one of ours for
mmseg names ``srvit_backbone.openmmlab.segmentation`` instead, which registers its data, runner,
hooks and neck too.
"""

from srvit_backbone.openmmlab.backbone import SRViTBackbone
from srvit_backbone.openmmlab.optimizer import SRViTLayerDecayOptimWrapperConstructor
from srvit_backbone.openmmlab.pyramid import SimpleFeaturePyramid

__all__ = ["SRViTBackbone", "SRViTLayerDecayOptimWrapperConstructor", "SimpleFeaturePyramid"]
