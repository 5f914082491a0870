"""SR-ViT in MMSegmentation and MMDetection: the backbone and layer-wise learning-rate decay.

Both are registered in MMEngine's root registries, which the registries of mmseg and mmdet fall back
to. A config needs ``custom_imports = dict(imports=["srvit_backbone.adapters.mm_backbone"])``.
"""

from collections.abc import Sequence
from typing import Any

from mmengine.model import BaseModule
from mmengine.model.weight_init import PretrainedInit, update_init_info
from mmengine.optim import DefaultOptimWrapperConstructor
from mmengine.registry import MODELS, OPTIM_WRAPPER_CONSTRUCTORS
from torch import Tensor, nn

from srvit_backbone.checkpoint import load_checkpoint
from srvit_backbone.layer_depth import layer_lr_scales
from srvit_backbone.srvit import SRViT
from srvit_backbone.variants import variant_settings


@MODELS.register_module()
class SRViTBackbone(SRViT, BaseModule):
    """SRViT as an MMEngine backbone with a tuple of feature maps, all of stride 16.

    By default the maps are the outputs of the recursive units without the final norm, as section
    D.3 of the paper segments. A pyramid built from the last block (section D.2, MMDetection)
    sets ``out_indices=(-1,), final_norm=True``. What is not computed is kept, so that weights load
    and save whole, but is not trainable.

    Args:
        variant: A name of VARIANTS.
        img_size: Side in pixels of the native position embedding; inputs may have any size.
        out_indices: Feature points (see SRViT), in ascending order: for T > 1 the units, then the
            last block; for T = 1 the blocks.
        final_norm: Apply the final norm to the maps.
        frozen_stages: -1 to train everything, 0 to freeze the embeddings, n to freeze the first n
            entries of ``blocks`` too (the first block, then the units).
        with_cp: Recompute activations in the backward pass instead of storing them;
            "keep_attention" keeps the outputs of attention.
        pretrained: File with weights, as ``init_cfg=dict(type="Pretrained", checkpoint=...)``.
        warm_start: Accept a plain ViT's (DeiT's) blocks in a recursive model; True or one of
            ``plain_vit.WARM_STARTS``.
        init_cfg: MMEngine's initialisation config; a "Pretrained" one is read by
            ``srvit_backbone.checkpoint``, which loads all or raises.
        **overrides: Arguments of SRViT that win over the variant's, e.g. ``drop_path_rate``.

    Raises:
        ValueError: Unknown variant or argument out of range.
    """

    def __init__(
        self,
        variant: str = "srvit_s_t3",
        img_size: int | tuple[int, int] = 512,
        out_indices: Sequence[int] = (0, 1, 2, 3),
        final_norm: bool = False,
        frozen_stages: int = -1,
        with_cp: bool | str = False,
        pretrained: str | None = None,
        warm_start: bool | str = False,
        init_cfg: dict | list[dict] | None = None,
        **overrides: Any,
    ) -> None:
        settings = variant_settings(variant, **overrides)
        super().__init__(img_size=img_size, num_classes=0, **settings)
        # MMDetection's NumClassCheckHook takes all that has one for a head.
        del self.num_classes
        if pretrained and init_cfg:
            raise ValueError("give the weights as pretrained or as init_cfg, not both")
        self.init_cfg = {"type": "Pretrained", "checkpoint": pretrained} if pretrained else init_cfg
        self.warm_start = warm_start
        self.out_indices = tuple(out_indices)
        self.final_norm = final_norm
        wanted = self.feature_blocks(self.out_indices)
        if wanted != sorted(set(wanted)):
            raise ValueError(f"out_indices={self.out_indices} must be in ascending order")
        if not -1 <= frozen_stages <= len(self.blocks):
            raise ValueError(
                f"frozen_stages={frozen_stages}: must be -1 (none) to {len(self.blocks)}"
            )
        self.frozen_stages = frozen_stages
        self.set_grad_checkpointing(with_cp)
        # Without a gradient these would stop training on several GPUs.
        for unused in (*self.blocks[wanted[-1] + 1 :], *([] if final_norm else [self.norm])):
            unused.requires_grad_(False)
        for module in self._frozen():
            module.requires_grad_(False)

    def init_weights(self) -> None:
        """Load the weights that ``init_cfg`` names; without any, those there are stay.

        Raises:
            CheckpointError: The file is missing or damaged, or does not fit.
        """
        configs = self.init_cfg if isinstance(self.init_cfg, list) else [self.init_cfg]
        for config in configs:
            if config and config["type"] in ("Pretrained", PretrainedInit):
                load_checkpoint(self, config["checkpoint"], warm_start=self.warm_start)
                if hasattr(self, "_params_init_info"):  # MMEngine's record, kept from the root
                    update_init_info(self, f"loaded from {config['checkpoint']}")
            elif config:
                raise ValueError(
                    f"init_cfg of type {config['type']!r}: SRViT initialises itself, only "
                    "'Pretrained' can replace that"
                )
        self.is_init = True

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Image (B, 3, H, W) -> maps (B, C, ceil(H / 16), ceil(W / 16)), one an out index."""
        return tuple(
            self.forward_intermediates(
                x, self.out_indices, norm=self.final_norm, intermediates_only=True
            )
        )

    def train(self, mode: bool = True) -> "SRViTBackbone":
        """Set the mode; what is frozen stays in evaluation mode, without drop path."""
        super().train(mode)
        for module in self._frozen():
            if isinstance(module, nn.Module):
                module.eval()
        return self

    def _frozen(self) -> list[nn.Module | Tensor]:
        if self.frozen_stages < 0:
            return []
        return [
            self.patch_embed,
            self.pos_embed,
            self.cls_token,
            *([] if self.dist_token is None else [self.dist_token]),
            *self.blocks[: self.frozen_stages],
        ]


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class SRViTLayerDecayOptimWrapperConstructor(DefaultOptimWrapperConstructor):
    """Layer-wise learning-rate decay over SR-ViT's stored blocks, the rule of ``layer_depth``.

    A shared block is one layer however often it runs. Norms, biases, position embedding and tokens
    are not weight-decayed. ``paramwise_cfg`` may hold

    * ``decay_rate``: factor per layer, default 1;
    * ``custom_keys``: as MMEngine's; the longest key in a name wins, its ``lr_mult`` comes on top
      of the layer's factor, its ``decay_mult`` replaces the rule above.

    Raises:
        ValueError: ``paramwise_cfg`` holds anything else.
    """

    KEYS = ("decay_rate", "custom_keys")

    def _validate_cfg(self) -> None:
        super()._validate_cfg()
        unknown = sorted(set(self.paramwise_cfg) - set(self.KEYS))
        if unknown:
            raise ValueError(f"paramwise_cfg has {unknown}; known are {list(self.KEYS)}")
        # MMEngine asks for parameter groups only where there are options.
        self.paramwise_cfg = {"decay_rate": 1.0, **self.paramwise_cfg}

    def add_params(self, params: list[dict], module: nn.Module, prefix: str = "", **_: Any) -> None:
        """Append parameter groups for a whole model, one for each pair of rates."""
        scales = layer_lr_scales(module, self.paramwise_cfg["decay_rate"])
        custom_keys = self.paramwise_cfg.get("custom_keys", {})
        embeddings = {
            id(parameter)
            for backbone in module.modules()
            if isinstance(backbone, SRViT)
            for name, parameter in backbone.named_parameters()
            if name in backbone.no_weight_decay()
        }
        groups: dict[tuple[float, float | None], dict] = {}
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                continue
            key = max((k for k in custom_keys if k in name), key=len, default=None)
            custom = custom_keys[key] if key else {}
            decayed = parameter.ndim > 1 and id(parameter) not in embeddings
            lr = self.base_lr * scales[name] * custom.get("lr_mult", 1.0)
            decay = self.base_wd and self.base_wd * custom.get("decay_mult", float(decayed))
            group = groups.setdefault((lr, decay), {"params": [], "lr": lr})
            if decay is not None:
                group["weight_decay"] = decay
            group["params"].append(parameter)
        params.extend(groups.values())
