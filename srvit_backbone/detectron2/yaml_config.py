"""SR-ViT in Detectron2's yaml configs."""

from detectron2.config import CfgNode
from detectron2.layers import ShapeSpec
from detectron2.modeling import BACKBONE_REGISTRY
from detectron2.modeling.backbone.fpn import LastLevelMaxPool

from srvit_backbone.detectron2.backbone import SRViTBackbone
from srvit_backbone.detectron2.pyramid import SRViTFeaturePyramid


def add_srvit_config(cfg: CfgNode) -> None:
    """Add the keys that ``build_srvit_sfp_backbone`` reads, as ``cfg.MODEL.SRVIT``."""
    cfg.MODEL.SRVIT = CfgNode(
        {
            "VARIANT": "srvit_s_t3",
            "IMG_SIZE": 1024,
            "DROP_PATH_RATE": 0.1,
            "GRAD_CHECKPOINTING": False,
            # Backbone weights; MODEL.WEIGHTS is for those of a whole detector.
            "CHECKPOINT": "",
            "OUT_CHANNELS": 256,
            "NORM": "LN",
            "SQUARE_PAD": 0,
        }
    )


@BACKBONE_REGISTRY.register()
def build_srvit_sfp_backbone(cfg: CfgNode, input_shape: ShapeSpec) -> SRViTFeaturePyramid:
    """SR-ViT with Simple Feature Pyramid, maps p2 to p6, from a yaml config.

    Args:
        cfg: A config that went through ``add_srvit_config``.
        input_shape: Detectron2's description of the image; its channels are used.

    Raises:
        ValueError: ``add_srvit_config`` was not called, or the variant is unknown.
    """
    if "SRVIT" not in cfg.MODEL:
        raise ValueError("cfg.MODEL.SRVIT is missing: call add_srvit_config(cfg) first")
    settings = cfg.MODEL.SRVIT
    net = SRViTBackbone(
        settings.VARIANT,
        img_size=settings.IMG_SIZE,
        grad_checkpointing=settings.GRAD_CHECKPOINTING,
        checkpoint=settings.CHECKPOINT,
        drop_path_rate=settings.DROP_PATH_RATE,
        in_chans=input_shape.channels,
    )
    return SRViTFeaturePyramid(
        net=net,
        in_feature=net.out_feature,
        out_channels=settings.OUT_CHANNELS,
        scale_factors=(4.0, 2.0, 1.0, 0.5),
        top_block=LastLevelMaxPool(),
        norm=settings.NORM,
        square_pad=settings.SQUARE_PAD,
    )
