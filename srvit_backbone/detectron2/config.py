"""LazyConfigs of detectors: load with checked overrides, point at own data, compare two runs."""

import difflib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from detectron2.config import LazyConfig, instantiate
from detectron2.data import MetadataCatalog
from detectron2.utils.registry import locate
from omegaconf import DictConfig, OmegaConf
from torch import nn

from srvit_backbone.detectron2.data import (
    OWN_TRAIN,
    OWN_VAL,
    check_registered,
    register_own_data,
)
from srvit_backbone.errors import InputError

logger = logging.getLogger(__name__)

# Where a detector states its number of classes.
CLASS_COUNTS = ("model.roi_heads.num_classes", "model.num_classes")
# What a resumed run may change without becoming another run.
FREE_KEYS = (
    "train.output_dir",
    "train.log_period",
    "train.eval_period",
    "train.checkpointer",
    "train.device",
    "train.prediction_sheet",
    "train.init_checkpoint",
    "dataloader.test",
    "dataloader.evaluator",
    "dataloader.train.num_workers",
    "own_data.val",
    "class_names",
)


def load_config(path: str, overrides: list[str]) -> DictConfig:
    """A LazyConfig, in Python or as saved by a run, with ``key=value`` overrides applied.

    Raises:
        InputError: No such file, or an override of a key that the config does not have (put "+" in
            front to add one).
    """
    if not Path(path).is_file():
        raise InputError(f"no config file {path}")
    config = LazyConfig.load(path)
    for override in overrides:
        key, separator, _ = override.partition("=")
        if not separator:
            raise InputError(f"{override!r} is no override: write key=value")
        if not key.startswith("+") and not _has(config, key):
            known = difflib.get_close_matches(key, _keys(config), n=1)
            hint = f", did you mean {known[0]}?" if known else ""
            raise InputError(f"the config has no key {key}{hint} (+{key}=... adds one)")
    return LazyConfig.apply_overrides(config, overrides)


def prepare_data(config: DictConfig, overrides: Sequence[str] = ()) -> None:
    """Register own data if the config names some, set the class count, and check that all is there.

    Args:
        config: Changed in place.
        overrides: Those given by the user; a class count among them has to match the data.

    Raises:
        InputError: Data are missing or unusable, or the class count does not match them.
    """
    own = {key: value for key, value in config.get("own_data", {}).items() if value}
    count_key = next((key for key in CLASS_COUNTS if _has(config, key)), None)
    if own:
        missing = [key for key in config.own_data if key not in own]
        if missing:
            raise InputError(f"own data need all four paths, missing: {', '.join(missing)}")
        classes = register_own_data(**own)
        config.dataloader.train.dataset.names = OWN_TRAIN
        config.dataloader.test.dataset.names = OWN_VAL
        if count_key and not any(override.startswith(f"{count_key}=") for override in overrides):
            OmegaConf.update(config, count_key, len(classes))
    for part in (config.dataloader.train, config.dataloader.test):
        check_registered(part.dataset.names)
    classes = MetadataCatalog.get(config.dataloader.train.dataset.names).thing_classes
    config.class_names = list(classes)
    if count_key:
        count = OmegaConf.select(config, count_key)
        if count != len(classes):
            raise InputError(
                f"{count_key}={count}, but {config.dataloader.train.dataset.names} has "
                f"{len(classes)} classes: {', '.join(classes[:10])}"
            )


def choose_device(config: DictConfig) -> torch.dtype | None:
    """Set train.device to what there is; returns the type for mixed precision, None for none.

    On the CPU training is in full precision whatever the config says: said in one log line.
    """
    wanted = config.train.amp
    if config.train.device == "cuda" and not torch.cuda.is_available():
        config.train.device = "cpu"
    if config.train.device == "cpu" and wanted.enabled:
        logger.info("Training on the CPU in full precision: no GPU is in use, so AMP is off")
        return None
    logger.info(
        "Training on %s, AMP %s", config.train.device, wanted.dtype if wanted.enabled else "off"
    )
    return getattr(torch, wanted.dtype) if wanted.enabled else None


def build_model(config: DictConfig) -> nn.Module:
    """The detector of a config, on train.device.

    Raises:
        InputError: An argument in the config is out of range.
    """
    try:
        model = instantiate(config.model)
    except ValueError as error:
        raise InputError(f"the config's model cannot be built: {error}") from error
    return model.to(config.train.device)


def check_same_run(config: DictConfig, saved: Path) -> None:
    """Raise InputError if ``saved``, the config of a run, differs in what makes a run."""
    old, new = (_flat(c) for c in (LazyConfig.load(str(saved)), config))
    changed = sorted(
        key
        for key in old.keys() | new.keys()
        if old.get(key) != new.get(key) and not key.startswith(FREE_KEYS)
    )
    if changed:
        lines = [f"{key} was {old.get(key)}, is {new.get(key)}" for key in changed[:5]]
        raise InputError(
            f"{saved.parent} holds a run with another config ({'; '.join(lines)}): resume with the "
            "same one, or choose another train.output_dir"
        )


def _has(config: DictConfig, key: str) -> bool:
    parent, _, name = key.rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    return OmegaConf.is_config(node) and name in node


def _flat(config: DictConfig) -> dict[str, str]:
    flat: dict[str, str] = {}

    def visit(node: Any, prefix: str) -> None:
        if OmegaConf.is_dict(node):
            for key in node:
                visit(node[key], f"{prefix}.{key}" if prefix else str(key))
        elif OmegaConf.is_list(node):
            for index, item in enumerate(node):
                visit(item, f"{prefix}.{index}")
        elif prefix.endswith("_target_"):
            # A saved config names functions and classes, by any of their paths; one in Python
            # holds them.
            target = locate(node) if isinstance(node, str) else node
            flat[prefix] = f"{target.__module__}.{target.__qualname__}"
        else:
            flat[prefix] = str(node)

    visit(config, "")
    return flat


def _keys(config: DictConfig) -> list[str]:
    return list(_flat(config))
