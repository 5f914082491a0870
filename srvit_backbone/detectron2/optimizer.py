"""Layer-wise learning-rate decay and weight decay in Detectron2."""

from collections.abc import Sequence
from math import isqrt
from typing import Any

from detectron2.solver.build import get_default_optimizer_params
from torch import nn

from srvit_backbone.layer_depth import layer_depth, layer_lr_scales
from srvit_backbone.srvit import SRViT


def get_srvit_lr_decay_rate(
    name: str,
    lr_decay_rate: float = 1.0,
    num_layers: int = 12,
    recursion_depth: int = 3,
    unit_depths: Sequence[int] | None = None,
) -> float:
    """Learning-rate factor of a parameter, as Detectron2's ``get_vit_lr_decay_rate`` for ViT.

    Our own configs use ``get_srvit_optimizer_params``, which asks the model instead.

    Args:
        name: Parameter name with whatever prefix; heads and pyramid have factor 1.
        lr_decay_rate: Factor per layer.
        num_layers: Unique blocks: 12 for S and B, 8 for T.
        recursion_depth: T of the model; only whether it is 1 matters.
        unit_depths: Blocks of each unit; by default the coarse-to-fine ones of that many layers.

    Raises:
        ValueError: ``num_layers`` fits no such units, or the name is of a block behind the last.
    """
    if unit_depths is None:
        # n (n + 1) / 2 blocks in units of n, n - 1, ..., 1.
        count = (isqrt(8 * (num_layers - 2) + 1) - 1) // 2
        unit_depths = tuple(range(count, 0, -1))
    if sum(unit_depths) != num_layers - 2:
        raise ValueError(
            f"num_layers={num_layers} is not 2 + sum(unit_depths={tuple(unit_depths)})"
        )
    return lr_decay_rate ** (num_layers + 1 - layer_depth(name, unit_depths, recursion_depth))


def get_srvit_optimizer_params(
    model: nn.Module, base_lr: float, lr_decay_rate: float, weight_decay_norm: float | None = None
) -> list[dict[str, Any]]:
    """Parameter groups with layer-wise learning-rate decay, and no weight decay on embeddings.

    Args:
        model: The detector; its SR-ViT backbones say themselves how deep each parameter is.
        base_lr: Learning rate of all that is not the backbone.
        lr_decay_rate: Factor per layer, from the last block to the embeddings.
        weight_decay_norm: Weight decay of normalisation layers; None leaves the optimizer's.
            Detectron2's own "LN" (pyramid and heads) is not one of those it knows.
    """
    scales = layer_lr_scales(model, lr_decay_rate)
    embeddings = {
        name
        for module in model.modules()
        if isinstance(module, SRViT)
        for name in module.no_weight_decay()
    }
    return get_default_optimizer_params(
        model,
        base_lr=base_lr,
        weight_decay_norm=weight_decay_norm,
        # A parameter of the root module arrives with a dot in front.
        lr_factor_func=lambda name: scales[name.lstrip(".")],
        overrides={name: {"weight_decay": 0.0} for name in embeddings},
    )
