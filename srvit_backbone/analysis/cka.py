"""Linear CKA between the depths of models (appendix B), in minibatches.

Kornblith et al. 2019 define the similarity; the unbiased estimate, averaged over minibatches, is
that of Nguyen et al. 2021. Examples are pictures, features all tokens of a depth.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from srvit_backbone.soft_mor import RecursiveUnit
from srvit_backbone.srvit import SRViT

MIN_BATCH = 4  # the unbiased estimate divides by batch - 3


class DepthRecorder:
    """The Gram matrix (B, B) of every executed depth of a model, in the order of execution.

    Args:
        model: Backbone in evaluation mode.
    """

    def __init__(self, model: SRViT) -> None:
        self.model = model
        self.labels = depth_labels(model)
        self._grams: list[Tensor] = []

    def __call__(self, images: Tensor) -> Tensor:
        """Images (B, 3, H, W) -> (D_eff, B, B), float64."""
        self._grams = []
        hooks = [block.register_forward_hook(self._record) for block in _plain_blocks(self.model)]
        try:
            with torch.no_grad():
                self.model.forward_features(images)
        finally:
            for hook in hooks:
                hook.remove()
        return torch.stack(self._grams)

    def _record(self, block: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        features = output.flatten(1).double()
        self._grams.append(features @ features.T)


def _plain_blocks(model: SRViT) -> list[nn.Module]:
    found: list[nn.Module] = []
    for block in model.blocks:
        found += block.blocks if isinstance(block, RecursiveUnit) else [block]
    return found


def depth_labels(model: SRViT) -> list[tuple[str, int]]:
    """Of every executed depth the stage it belongs to ("first", "unit 1", ...) and its step."""
    labels: list[tuple[str, int]] = []
    for index, block in enumerate(model.blocks):
        if isinstance(block, RecursiveUnit):
            steps = range(1, block.steps + 1)
            labels += [(f"unit {index}", step) for step in steps for _ in range(block.depth)]
        elif model.recursion_depth == 1:
            labels.append((f"block {index + 1}", 1))
        else:
            labels.append(("first" if index == 0 else "last", 1))
    return labels


def hsic(first: Tensor, second: Tensor) -> Tensor:
    """Unbiased HSIC of all pairs of Gram matrices: (D, B, B), (E, B, B) -> (D, E)."""
    count = first.shape[-1]
    first, second = _without_diagonal(first), _without_diagonal(second)
    rows = first.sum(-1), second.sum(-1)
    totals = rows[0].sum(-1), rows[1].sum(-1)
    trace = first.flatten(1) @ second.flatten(1).T
    means = totals[0][:, None] * totals[1] / ((count - 1) * (count - 2))
    cross = rows[0] @ rows[1].T * 2 / (count - 2)
    return (trace + means - cross) / (count * (count - 3))


def _without_diagonal(grams: Tensor) -> Tensor:
    return grams - torch.diag_embed(grams.diagonal(dim1=-2, dim2=-1))


def compare(first: SRViT, second: SRViT, batches: Iterable[Tensor]) -> Tensor:
    """Linear CKA of all depths of one model with all depths of another.

    Args:
        first: Backbone in evaluation mode.
        second: Another, or the same.
        batches: Images (B, 3, H, W), B at least 4. Memory does not grow with their number.

    Returns:
        (D_first, D_second), float64.

    Raises:
        ValueError: There is no batch, or one is too small.
    """
    recorders = DepthRecorder(first), DepthRecorder(second)
    sums: list[Any] = [0.0, 0.0, 0.0]  # tensors from the first batch on
    seen = 0
    for images in batches:
        if len(images) < MIN_BATCH:
            raise ValueError(f"a batch of {len(images)} pictures: CKA needs at least {MIN_BATCH}")
        one = recorders[0](images)
        two = one if second is first else recorders[1](images)
        sums[0] += hsic(one, two)
        sums[1] += hsic(one, one).diagonal()
        sums[2] += hsic(two, two).diagonal()
        seen += 1
    if not seen:
        raise ValueError("no pictures")
    return sums[0] / (sums[1][:, None] * sums[2]).sqrt()
