"""FLOPs of a detector as the paper counted them: fvcore's counter on one image in eval mode."""

import math
from typing import Any

import torch
from detectron2.utils.analysis import FlopCountAnalysis
from torch import nn


def count_gflops(model: nn.Module, height: int, width: int) -> float:
    """Multiply-accumulates of one image, in units of 1e9.

    fvcore does not see fused attention, and the paper's figures do not contain it either. The soft
    mixture counts as T multiply-adds a token and channel.

    Args:
        model: A detector of Detectron2.
        height: Image height in pixels.
        width: Image width in pixels.
    """
    device = next(model.parameters()).device
    image = {"image": torch.zeros(3, height, width, device=device)}
    counter = FlopCountAnalysis(model.eval(), [image])
    counter.set_op_handle(**{"aten::addcmul": _count_elements})
    counter.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    counter.tracer_warnings("none")
    return sum(counter.by_operator().values()) / 1e9


def _count_elements(inputs: list[Any], outputs: list[Any]) -> int:
    return math.prod(outputs[0].type().sizes())
