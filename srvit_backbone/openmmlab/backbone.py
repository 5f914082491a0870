"""SR-ViT as a backbone of MMEngine: MMSegmentation and MMDetection."""

from collections.abc import Sequence
from typing import Any

from mmengine.model import BaseModule
from mmengine.model.weight_init import PretrainedInit, update_init_info
from mmengine.registry import MODELS
from torch import Tensor, nn

from srvit_backbone.checkpoint import load_checkpoint
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
