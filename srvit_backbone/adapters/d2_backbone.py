"""SR-ViT in Detectron2: the backbone, its pyramid, the yaml builder, the learning-rate rule.

LazyConfig: ``L(SRViTFeaturePyramid)(net=L(SRViTBackbone)(variant=...), ...)``. Yaml: import this
module, call ``add_srvit_config(cfg)``, set ``MODEL.BACKBONE.NAME: build_srvit_sfp_backbone``.
"""

from collections.abc import Sequence
from math import isqrt
from typing import Any

import torch.nn.functional as F
from detectron2.config import CfgNode
from detectron2.layers import ShapeSpec
from detectron2.modeling import BACKBONE_REGISTRY, Backbone, SimpleFeaturePyramid
from detectron2.modeling.backbone.fpn import LastLevelMaxPool
from detectron2.solver.build import get_default_optimizer_params
from torch import Tensor, nn

from srvit_backbone.checkpoint import load_checkpoint
from srvit_backbone.layer_depth import layer_depth, layer_lr_scales
from srvit_backbone.srvit import SRViT
from srvit_backbone.variants import variant_settings


class SRViTBackbone(SRViT, Backbone):
    """SRViT as a Detectron2 Backbone with one feature map: the last, after the final norm.

    Args:
        variant: A name of VARIANTS.
        img_size: Side in pixels of the native position embedding; inputs may have any size.
        out_feature: Name of the feature map.
        grad_checkpointing: Recompute activations in the backward pass instead of storing them;
            "keep_attention" keeps the outputs of attention.
        checkpoint: File with pretrained weights of this variant, "" for none. Detection configs set
            ``train.init_checkpoint`` instead, which is read once and not again on resume.
        **overrides: Arguments of SRViT that win over the variant's, e.g. ``drop_path_rate``.

    Raises:
        ValueError: Unknown variant or argument out of range.
    """

    def __init__(
        self,
        variant: str = "srvit_s_t3",
        img_size: int = 1024,
        out_feature: str = "last_feat",
        grad_checkpointing: bool | str = False,
        checkpoint: str = "",
        **overrides: Any,
    ) -> None:
        super().__init__(img_size=img_size, num_classes=0, **variant_settings(variant, **overrides))
        self.out_feature = out_feature
        self.set_grad_checkpointing(grad_checkpointing)
        if checkpoint:
            load_checkpoint(self, checkpoint)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Image (B, 3, H, W) -> {out_feature: (B, C, ceil(H / 16), ceil(W / 16))}."""
        return {
            self.out_feature: self.forward_intermediates(
                x, indices=[-1], norm=True, intermediates_only=True
            )[0]
        }

    def output_shape(self) -> dict[str, ShapeSpec]:
        """Channels and stride of the feature map."""
        return {self.out_feature: ShapeSpec(channels=self.embed_dim, stride=self.patch_size)}

    @property
    def size_divisibility(self) -> int:
        """The patch size; without padding to it the map would be of another size than the image."""
        return self.patch_size

    @property
    def padding_constraints(self) -> dict[str, int]:
        """What Detectron2's image batching pads to."""
        return {"size_divisibility": self.patch_size}


class SRViTFeaturePyramid(SimpleFeaturePyramid):
    """Detectron2's Simple Feature Pyramid with padding that is applied and never crops.

    Detectron2's class hands its divisibility over under a misspelt key, so that nothing is padded,
    and its square padding cuts off what is larger than the square. Here the divisibility arrives,
    and the square is padded in ``forward``, where an image larger than it keeps its size.

    Args: see SimpleFeaturePyramid; ``square_pad`` is the side in pixels, 0 for none.
    """

    @property
    def size_divisibility(self) -> int:
        """Stride of the coarsest map computed from the net (32 with the usual scales)."""
        return self._size_divisibility

    @property
    def padding_constraints(self) -> dict[str, int]:
        """What Detectron2's image batching pads to; the square is padded in ``forward``."""
        return {"size_divisibility": self._size_divisibility}

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Image (B, 3, H, W) -> {"p2": (B, C, H / 4, W / 4), ...}, H and W after padding."""
        height, width = x.shape[-2:]
        # Detectron2 pads normalised images with 0 to the right and below, and so does this.
        padding = (0, max(0, self._square_pad - width), 0, max(0, self._square_pad - height))
        return super().forward(F.pad(x, padding) if any(padding) else x)


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


def get_srvit_lr_decay_rate(
    name: str,
    lr_decay_rate: float = 1.0,
    num_layers: int = 12,
    recursion_depth: int = 3,
    unit_depths: Sequence[int] | None = None,
) -> float:
    """Learning-rate factor of a parameter, as Detectron2's ``get_vit_lr_decay_rate`` for ViT.

    Our own configs use ``get_srvit_optimizer_params``, which asks the model instead.

    Args:
        name: Parameter name with whatever prefix; heads and pyramid have factor 1.
        lr_decay_rate: Factor per layer.
        num_layers: Unique blocks: 12 for S and B, 8 for T.
        recursion_depth: T of the model; only whether it is 1 matters.
        unit_depths: Blocks of each unit; by default the coarse-to-fine ones of that many layers.

    Raises:
        ValueError: ``num_layers`` fits no such units, or the name is of a block behind the last.
    """
    if unit_depths is None:
        # n (n + 1) / 2 blocks in units of n, n - 1, ..., 1.
        count = (isqrt(8 * (num_layers - 2) + 1) - 1) // 2
        unit_depths = tuple(range(count, 0, -1))
    if sum(unit_depths) != num_layers - 2:
        raise ValueError(
            f"num_layers={num_layers} is not 2 + sum(unit_depths={tuple(unit_depths)})"
        )
    return lr_decay_rate ** (num_layers + 1 - layer_depth(name, unit_depths, recursion_depth))


def get_srvit_optimizer_params(
    model: nn.Module, base_lr: float, lr_decay_rate: float, weight_decay_norm: float | None = None
) -> list[dict[str, Any]]:
    """Parameter groups with layer-wise learning-rate decay, and no weight decay on embeddings.

    Args:
        model: The detector; its SR-ViT backbones say themselves how deep each parameter is.
        base_lr: Learning rate of all that is not the backbone.
        lr_decay_rate: Factor per layer, from the last block to the embeddings.
        weight_decay_norm: Weight decay of normalisation layers; None leaves the optimizer's.
            Detectron2's own "LN" (pyramid and heads) is not one of those it knows.
    """
    scales = layer_lr_scales(model, lr_decay_rate)
    embeddings = {
        name
        for module in model.modules()
        if isinstance(module, SRViT)
        for name in module.no_weight_decay()
    }
    return get_default_optimizer_params(
        model,
        base_lr=base_lr,
        weight_decay_norm=weight_decay_norm,
        # A parameter of the root module arrives with a dot in front.
        lr_factor_func=lambda name: scales[name.lstrip(".")],
        overrides={name: {"weight_decay": 0.0} for name in embeddings},
    )
