"""Parameter name -> depth: the one rule behind every layer-wise learning-rate decay.

Depth counts *stored* blocks, not recursion steps: a shared block has one depth however often it
runs. 0 is the patch embedding with the position embedding and the tokens, 1 the first block,
``num_layers`` the last block, and ``num_layers + 1`` everything behind it (final norm, heads, and
whatever is not the backbone). What a recursive unit adds (router, step transforms, mixture norm)
has the depth of the unit's last block.
"""

import re
from collections.abc import Sequence
from itertools import accumulate

from torch import nn

_STEM = re.compile(r"(?:^|\.)(?:cls_token|dist_token|pos_embed|patch_embed)(?:\.|$)")
_BLOCK = re.compile(r"(?:^|\.)blocks\.(\d+)(?:\.blocks\.(\d+))?(?:\.|$)")


def num_layers(unit_depths: Sequence[int]) -> int:
    """Unique blocks: the units' and the two that are not recursive (12 for S and B, 8 for T)."""
    return 2 + sum(unit_depths)


def stage_depths(unit_depths: Sequence[int], recursion_depth: int) -> list[int]:
    """Unique blocks in each entry of ``SRViT.blocks``: T = 1 has no units, all are plain blocks."""
    if recursion_depth == 1:
        return [1] * num_layers(unit_depths)
    return [1, *unit_depths, 1]


def layer_depth(name: str, unit_depths: Sequence[int], recursion_depth: int) -> int:
    """Depth of a parameter or module of SRViT, from 0 to ``num_layers + 1``.

    Args:
        name: Its name, with any prefix of wrappers around the backbone.
        unit_depths: The model's ``unit_depths``.
        recursion_depth: The model's ``recursion_depth``.

    Raises:
        ValueError: The name is of a block that such a model does not have.
    """
    if _STEM.search(name):
        return 0
    match = _BLOCK.search(name)
    if match is None:
        return num_layers(unit_depths) + 1
    stage = int(match[1])
    sizes = stage_depths(unit_depths, recursion_depth)
    if stage >= len(sizes):
        raise ValueError(
            f"{name}: a model with unit_depths={tuple(unit_depths)} and "
            f"recursion_depth={recursion_depth} has only blocks.0 to blocks.{len(sizes) - 1}"
        )
    last = list(accumulate(sizes))[stage]
    if match[2] is None:
        return last
    # With share_blocks=False the copies of a block, one set a step, have the block's depth.
    return last - sizes[stage] + 1 + int(match[2]) % sizes[stage]


def layer_lr_scales(model: nn.Module, decay: float) -> dict[str, float]:
    """Learning-rate factor of every parameter of a model that contains SR-ViT backbones.

    Args:
        model: A detector, segmentor or bare backbone; anything with ``layer_depth`` is a backbone.
        decay: Factor per layer; the last block has ``decay``, all that is not the backbone has 1.
    """
    scales = dict.fromkeys((name for name, _ in model.named_parameters()), 1.0)
    for prefix, module in model.named_modules():
        if not hasattr(module, "layer_depth"):
            continue
        top = module.layer_depth("head")
        for name, _ in module.named_parameters():
            full_name = f"{prefix}.{name}" if prefix else name
            scales[full_name] = decay ** (top - module.layer_depth(name))
    return scales
