"""FLOPs of an SR-ViT as the paper counted them."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


def count_gmacs(model: nn.Module, height: int, width: int) -> float:
    """Multiply-accumulates of one image, attention included and norms not, in units of 1e9.

    Tables 2, 3 and 5. The device may be "meta": nothing is computed then.

    Args:
        model: A classifier or a backbone that takes (1, 3, H, W).
        height: Image height in pixels.
        width: Image width in pixels.
    """
    device = next(model.parameters()).device
    with torch.no_grad(), unfused_attention(model), flop_counter() as counter:
        model.eval()(torch.zeros(1, 3, height, width, device=device))
    return counter.get_total_flops() / 2e9


@contextmanager
def unfused_attention(model: nn.Module) -> Iterator[None]:
    """Attention as plain matrix products, which counters see on every device."""
    fused: list[Any] = [m for m in model.modules() if getattr(m, "fused_attn", False)]
    for module in fused:
        module.fused_attn = False
    try:
        yield
    finally:
        for module in fused:
            module.fused_attn = True


def flop_counter() -> FlopCounterMode:
    """Torch's counter, which gives twice the multiply-accumulates.

    It is told that the soft mixture is T multiply-adds a token and channel.
    """
    return FlopCounterMode(
        display=False, custom_mapping={torch.ops.aten.addcmul: _count_multiply_adds}
    )


def _count_multiply_adds(*_: Any, out_shape: tuple[int, ...], **__: Any) -> int:
    return 2 * math.prod(out_shape)
