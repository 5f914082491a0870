"""ViTDet's Simple Feature Pyramid as an MMEngine neck, for MMDetection, which has none."""

from collections.abc import Sequence

import torch.nn.functional as F
from mmengine.model import BaseModule
from mmengine.registry import MODELS
from timm.layers import LayerNorm2d
from torch import Tensor, nn

# Layer norm over the channels of a map, as ViTDet's heads have it: norm_cfg=dict(type="LN2d").
MODELS.register_module("LN2d", module=LayerNorm2d)


@MODELS.register_module()
class SimpleFeaturePyramid(BaseModule):
    """Maps of several strides from the last map of a plain backbone, as Detectron2's class of it.

    Args:
        in_channels: Channels of the backbone.
        out_channels: Channels of every map given back.
        scales: Sides of the maps relative to the backbone's, of 4, 2, 1 and 0.5, from large to
            small: with stride 16 these are strides 4, 8, 16 and 32.
        num_outs: Maps to give back; each beyond ``scales`` is half as wide as the one before.
        add_extra_convs: Compute the further maps by convolutions of stride 2 (RetinaNet, DINO),
            not by taking every second value (Mask R-CNN).
        init_cfg: MMEngine's initialisation config.

    Raises:
        ValueError: A scale is not one of the four, or there are more of them than ``num_outs``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int = 256,
        scales: Sequence[float] = (4, 2, 1, 0.5),
        num_outs: int = 5,
        add_extra_convs: bool = False,
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        super().__init__(init_cfg)
        if num_outs < len(scales):
            raise ValueError(f"num_outs={num_outs} is less than the {len(scales)} scales")
        self.levels = nn.ModuleList(_level(in_channels, out_channels, scale) for scale in scales)
        self.num_extra = num_outs - len(scales)
        self.extra_convs = nn.ModuleList(
            nn.Conv2d(out_channels, out_channels, kernel_size=3, stride=2, padding=1)
            for _ in range(self.num_extra if add_extra_convs else 0)
        )

    def forward(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Maps of the backbone, of which the last (B, C, H, W) is read -> ``num_outs`` maps."""
        maps = [level(inputs[-1]) for level in self.levels]
        for index in range(self.num_extra):
            if self.extra_convs:
                previous = maps[-1] if index == 0 else F.relu(maps[-1])
                maps.append(self.extra_convs[index](previous))
            else:
                maps.append(F.max_pool2d(maps[-1], kernel_size=1, stride=2))
        # A layer norm over channels leaves the channels last in memory, which mmcv's RoIAlign does
        # not notice: it would pool other places.
        return tuple(level.contiguous() for level in maps)


def _level(in_channels: int, out_channels: int, scale: float) -> nn.Sequential:
    half, quarter = in_channels // 2, in_channels // 4
    if scale == 4:
        width = quarter
        resize = [
            nn.ConvTranspose2d(in_channels, half, kernel_size=2, stride=2),
            LayerNorm2d(half),
            nn.GELU(),
            nn.ConvTranspose2d(half, quarter, kernel_size=2, stride=2),
        ]
    elif scale == 2:
        width = half
        resize = [nn.ConvTranspose2d(in_channels, half, kernel_size=2, stride=2)]
    elif scale in (1, 0.5):
        width = in_channels
        resize = [] if scale == 1 else [nn.MaxPool2d(kernel_size=2, stride=2)]
    else:
        raise ValueError(f"scale {scale}: must be 4, 2, 1 or 0.5")
    return nn.Sequential(
        *resize,
        nn.Conv2d(width, out_channels, kernel_size=1, bias=False),
        LayerNorm2d(out_channels),
        nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1, bias=False),
        LayerNorm2d(out_channels),
    )
