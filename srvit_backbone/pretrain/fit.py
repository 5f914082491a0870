"""A pretraining recipe on the hardware at hand."""

from collections.abc import Callable
from typing import Any

import torch
from omegaconf import DictConfig
from torch import nn

from srvit_backbone.analysis.memory import StepMemory, step_memory
from srvit_backbone.training.fit import (
    POLICIES,
    changes_table,
    parse_memory,
    parts_that_fit,
    share_of,
)

KEYS = ("batch_size", "max_batch_per_process", "grad_checkpointing")


def fit_recipe(
    recipe: DictConfig,
    build: Callable[[], Any],
    batch: int | None,
    memory: str,
    processes: int,
) -> str:
    """Change a recipe to another batch and a limit of memory; returns what was changed.

    The learning rate follows the batch by the recipe's own rule, and the schedule is in epochs. A
    teacher's memory is not counted.

    Args:
        recipe: Changed in place.
        build: Makes the recipe's model.
        batch: Images a step over all processes; None for the recipe's.
        memory: Of one process, such as "12GB"; "" for no limit.
        processes: Of the run.

    Raises:
        InputError: The batch cannot be spread so, or nothing fits.
    """
    before = {key: recipe[key] for key in KEYS}
    rate = recipe.lr * recipe.batch_size / recipe.lr_batch_size
    recipe.batch_size = batch or recipe.batch_size
    share = share_of(recipe.batch_size, processes)
    rows: list[tuple[str, object, object]] = []
    if memory:

        def estimate(images: int, policy: str, accumulate: bool) -> int:
            with torch.device("meta"):
                model = build()
            model.set_grad_checkpointing(POLICIES[policy])
            dtype = getattr(torch, recipe.amp, None) if torch.cuda.is_available() else None
            return classifier_memory(model, recipe.img_size, images, accumulate, dtype).training

        parts = parts_that_fit(share, parse_memory(memory), estimate)
        recipe.max_batch_per_process = parts.images
        recipe.grad_checkpointing = POLICIES[parts.policy]
        rows.append((f"estimated memory of {memory}", "", f"{parts.bytes / 1e9:.2f} GB"))
    new_rate = recipe.lr * recipe.batch_size / recipe.lr_batch_size
    changed = [(key, before[key], recipe[key]) for key in KEYS]
    return changes_table([*changed, ("learning rate", f"{rate:.3g}", f"{new_rate:.3g}"), *rows])


def classifier_memory(
    model: nn.Module,
    size: int,
    batch: int,
    accumulate: bool = False,
    amp_dtype: torch.dtype | None = None,
) -> StepMemory:
    """Memory of a classifier's training step, and of inference on one image of ``size`` pixels."""
    return step_memory(
        model,
        lambda: model(torch.zeros(batch, 3, size, size)),
        lambda: model(torch.zeros(1, 3, size, size)),
        accumulate,
        amp_dtype,
    )
