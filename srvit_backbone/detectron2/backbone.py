"""SR-ViT as a backbone of Detectron2."""

from typing import Any

from detectron2.layers import ShapeSpec
from detectron2.modeling import Backbone
from torch import Tensor

from srvit_backbone.checkpoint import load_checkpoint
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
