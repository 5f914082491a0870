"""A segmentor's recipe on the hardware at hand: ``fit`` in the config, read when a run starts.

``mim train`` has no flags of ours, so it is ``--cfg-options fit.batch=8 fit.memory=12GB``.
"""

from typing import Any

import torch
from mmengine.config import Config
from mmengine.dist import get_world_size
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope
from torch.nn.modules.batchnorm import _BatchNorm

from srvit_backbone.errors import InputError
from srvit_backbone.openmmlab.memory import segmentor_memory
from srvit_backbone.training.fit import (
    POLICIES,
    changes_table,
    parse_memory,
    parts_that_fit,
    share_of,
    stretched,
)


def fit_config(config: Config, batch: int, memory: str) -> str:
    """Change a config to another batch and a limit of memory; returns what was changed.

    The recipe's batch is ``auto_scale_lr.base_batch_size``. MMEngine counts an iteration for every
    part of a batch, so all lengths grow with the number of parts. Batch norm sees a part at a time.

    Args:
        config: Changed in place; ``fit`` is emptied, so that the saved config says what was run.
        batch: Images a step over all processes; 0 for the recipe's.
        memory: Of one process, such as "12GB"; "" for no limit.

    Raises:
        InputError: The batch cannot be spread so, nothing fits, or the schedule is by epochs.
    """
    if config.train_cfg.get("by_epoch") or "max_iters" not in config.train_cfg:
        raise InputError("fit needs a schedule in iterations: train_cfg.type='IterBasedTrainLoop'")
    old = config.auto_scale_lr.base_batch_size
    batch = batch or old
    share = share_of(batch, get_world_size())
    wrapper, backbone = config.optim_wrapper, config.model.backbone
    parts_before = wrapper.get("accumulative_counts", 1)
    before = _values(config)
    images, policy = share, None
    if memory:
        parts = parts_that_fit(share, parse_memory(memory), estimator(config), _least(config))
        images, policy = parts.images, parts.policy
        backbone.with_cp = POLICIES[policy]
    count = share // images

    def length(iterations: int) -> int:
        # A whole number of steps, for a checkpoint in the middle of one could not be resumed.
        return count * stretched(iterations, old, batch * parts_before)

    config.train_dataloader.batch_size = images
    wrapper.accumulative_counts = count
    wrapper.optimizer.lr *= batch / old
    config.auto_scale_lr.base_batch_size = batch
    config.train_cfg.max_iters = length(config.train_cfg.max_iters)
    config.train_cfg.val_interval = length(config.train_cfg.val_interval)
    config.default_hooks.checkpoint.interval = length(config.default_hooks.checkpoint.interval)
    for scheduler in config.param_scheduler:
        scheduler.begin = length(scheduler.begin) if scheduler.begin else 0
        scheduler.end = length(scheduler.end)
    config.fit = {"batch": 0, "memory": ""}
    rows = [
        (name, was, now)
        for (name, was), now in zip(before.items(), _values(config).values(), strict=True)
    ]
    if memory:
        rows.append((f"estimated memory of {memory}", "", f"{parts.bytes / 1e9:.2f} GB"))
    return changes_table(rows)


def _values(config: Config) -> dict[str, object]:
    return {
        "recipe's batch": config.auto_scale_lr.base_batch_size,
        "train_dataloader.batch_size": config.train_dataloader.batch_size,
        "optim_wrapper.accumulative_counts": config.optim_wrapper.get("accumulative_counts", 1),
        "model.backbone.with_cp": config.model.backbone.get("with_cp", False),
        "optim_wrapper.optimizer.lr": config.optim_wrapper.optimizer.lr,
        "train_cfg.max_iters": config.train_cfg.max_iters,
        "train_cfg.val_interval": config.train_cfg.val_interval,
        "default_hooks.checkpoint.interval": config.default_hooks.checkpoint.interval,
        "param_scheduler": ", ".join(f"{s.begin}-{s.end}" for s in config.param_scheduler),
    }


def _build(config: Config) -> Any:
    init_default_scope(config.get("default_scope", "mmseg"))
    settings = config.model.copy()
    settings.backbone = {**settings.backbone, "pretrained": None, "init_cfg": None}
    with torch.device("meta"):
        model = MODELS.build(settings)
        return revert_sync_batchnorm(model)


def _least(config: Config) -> int:
    """Images of a part: batch norm behind a pooling to 1 x 1 needs two."""
    norms = [module for module in _build(config).modules() if isinstance(module, _BatchNorm)]
    return 2 if norms else 1


def estimator(config: Config):
    """Bytes of a step by (images, policy, whether gradients are accumulated)."""
    height, width = config.model.data_preprocessor.size
    wrapper = config.optim_wrapper
    dtype = torch.float16 if wrapper.type == "AmpOptimWrapper" else None

    def estimate(images: int, policy: str, accumulate: bool) -> int:
        model = _build(config)
        model.backbone.set_grad_checkpointing(POLICIES[policy])
        return segmentor_memory(model, height, width, images, accumulate, dtype).training

    return estimate
