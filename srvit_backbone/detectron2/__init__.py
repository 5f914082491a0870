"""SR-ViT in Detectron2: the backbone, its pyramid, the yaml builder, the learning-rate rule.

LazyConfig: ``L(SRViTFeaturePyramid)(net=L(SRViTBackbone)(variant=...), ...)``. Yaml: import this
package, call ``add_srvit_config(cfg)``, set ``MODEL.BACKBONE.NAME: build_srvit_sfp_backbone``.
"""

from srvit_backbone.detectron2.backbone import SRViTBackbone
from srvit_backbone.detectron2.optimizer import get_srvit_lr_decay_rate, get_srvit_optimizer_params
from srvit_backbone.detectron2.pyramid import SRViTFeaturePyramid
from srvit_backbone.detectron2.yaml_config import add_srvit_config, build_srvit_sfp_backbone

__all__ = [
    "SRViTBackbone",
    "SRViTFeaturePyramid",
    "add_srvit_config",
    "build_srvit_sfp_backbone",
    "get_srvit_lr_decay_rate",
    "get_srvit_optimizer_params",
]
