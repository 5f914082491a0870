"""MMSegmentation's Multi-Level Neck for inputs of any size."""

import torch.nn.functional as F
from mmseg.models.necks import MultiLevelNeck
from mmseg.registry import MODELS
from torch import Tensor


@MODELS.register_module()
class AnySizeMultiLevelNeck(MultiLevelNeck):
    """MultiLevelNeck that also takes maps so small that a scale below 1 would leave nothing.

    Args: see MultiLevelNeck. Give ``scales`` from large to small, as the heads expect.
    """

    def forward(self, inputs: list[Tensor] | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Maps (B, C_in, H, W) -> maps (B, C_out, scale x H, scale x W), at least 1 x 1."""
        size = inputs[0].shape[-2:]
        if min(size) * min(self.scales) >= 1:
            return super().forward(inputs)
        maps = [lateral(x) for lateral, x in zip(self.lateral_convs, inputs, strict=True)]
        resized = [
            F.interpolate(x, [max(1, int(scale * side)) for side in size], mode="bilinear")
            for x, scale in zip(maps, self.scales, strict=True)
        ]
        return tuple(conv(x) for conv, x in zip(self.convs, resized, strict=True))
