"""Detectron2's Simple Feature Pyramid with padding that is applied and never crops."""

import torch.nn.functional as F
from detectron2.modeling import SimpleFeaturePyramid
from torch import Tensor


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
