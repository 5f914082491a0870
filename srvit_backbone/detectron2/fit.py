"""A detector's recipe on the hardware at hand."""

import torch
from detectron2.config import instantiate
from omegaconf import DictConfig

from srvit_backbone.detectron2.memory import detector_memory
from srvit_backbone.training.fit import (
    POLICIES,
    changes_table,
    parse_memory,
    parts_that_fit,
    share_of,
    stretched,
)


def fit_config(config: DictConfig, batch: int | None, memory: str, processes: int) -> str:
    """Change a LazyConfig to another batch and a limit of memory; returns what was changed.

    Args:
        config: Changed in place.
        batch: Images a step over all processes; None for the recipe's.
        memory: Of one process, such as "12GB"; "" for no limit.
        processes: Of the run.

    Raises:
        InputError: The batch cannot be spread so, or nothing fits.
    """
    keys = (
        "dataloader.train.total_batch_size",
        "train.max_batch_per_process",
        "model.backbone.net.grad_checkpointing",
        "optimizer.lr",
        "train.max_iter",
        "train.eval_period",
        "train.checkpointer.period",
    )
    before = {key: _get(config, key) for key in keys}
    data, train, old = (
        config.dataloader.train,
        config.train,
        config.dataloader.train.total_batch_size,
    )
    batch = batch or old
    share = share_of(batch, processes)
    # Warm-up is a share of the schedule and so needs no change.
    data.total_batch_size = batch
    config.optimizer.lr *= batch / old
    train.max_iter = stretched(train.max_iter, old, batch)
    for holder, key in ((train, "eval_period"), (train.checkpointer, "period")):
        if holder[key]:
            holder[key] = stretched(holder[key], old, batch)
    if memory:
        parts = parts_that_fit(share, parse_memory(memory), estimator(config))
        train.max_batch_per_process = parts.images
        config.model.backbone.net.grad_checkpointing = POLICIES[parts.policy]
    rows = [(key, before[key], _get(config, key)) for key in keys]
    if memory:
        rows.append((f"estimated memory of {memory}", "", f"{parts.bytes / 1e9:.2f} GB"))
    return changes_table(rows)


def estimator(config: DictConfig):
    """Bytes of a step by (images, policy, whether gradients are accumulated)."""
    backbone = config.model.backbone
    side = backbone.square_pad or backbone.net.img_size
    amp = config.train.amp
    on_gpu = config.train.device != "cpu" and torch.cuda.is_available()
    dtype = getattr(torch, amp.dtype) if amp.enabled and on_gpu else None

    def estimate(images: int, policy: str, accumulate: bool) -> int:
        with torch.device("meta"):
            model = instantiate(config.model)
        model.backbone.net.set_grad_checkpointing(POLICIES[policy])
        return detector_memory(model, side, side, images, accumulate, dtype).training

    return estimate


def _get(config: DictConfig, key: str):
    node = config
    for part in key.split("."):
        node = node[part]
    return node
