"""FLOPs of a segmentor: as the paper counted them, and what is really computed."""

import math
from typing import Any

import torch
from timm.layers import set_fused_attn, use_fused_attn
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


def count_gflops(model: nn.Module, height: int, width: int) -> tuple[float, float]:
    """Twice the multiply-accumulates of one image, attention included, in units of 1e9.

    Args:
        model: A segmentor with an SRViTBackbone, whose attention was built without fused kernels
            (see ``unfused_attention``): the fused one is not counted on every device.
        height: Image height in pixels.
        width: Image width in pixels.

    The soft mixture counts as T multiply-adds a token and channel.

    Returns:
        With the last block, as Table 4 has it though nothing uses its output, and without.
    """
    device = next(model.parameters()).device
    image = torch.zeros(1, 3, height, width, device=device)
    model.eval()
    with torch.no_grad(), _counter() as counter:
        model(image, mode="tensor")
        used = counter.get_total_flops()
    backbone = model.backbone
    behind = backbone.blocks[backbone.feature_blocks(backbone.out_indices)[-1] + 1 :]
    grid = backbone.patch_embed.dynamic_feat_size((height, width))
    tokens = torch.zeros(
        1, backbone.num_prefix_tokens + grid[0] * grid[1], backbone.embed_dim, device=device
    )
    with torch.no_grad(), _counter() as counter:
        for block in behind:
            block(tokens)
    return (used + counter.get_total_flops()) / 1e9, used / 1e9


def _counter() -> FlopCounterMode:
    mixture = {torch.ops.aten.addcmul: _count_addcmul}
    return FlopCounterMode(display=False, custom_mapping=mixture)


def _count_addcmul(*_: Any, out_shape: tuple[int, ...], **__: Any) -> int:
    return 2 * math.prod(out_shape)


class unfused_attention:  # noqa: N801  reads as the context it is
    """Models built inside have attention as plain matrix products, which counters see."""

    def __enter__(self) -> None:
        self._before = use_fused_attn()
        set_fused_attn(False)

    def __exit__(self, *_: object) -> None:
        set_fused_attn(self._before)
