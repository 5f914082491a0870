"""LazyConfigs of detectors: load with checked overrides, point at own data, compare two runs."""

import difflib
import logging
import os
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
from srvit_backbone.own_data.detection import PATHS, Detection, read_detection
from srvit_backbone.training.run_record import fingerprint

logger = logging.getLogger(__name__)

# Of a run's folder: what was understood of own data.
DATA = "data"

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
    "own_data.check",
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
    overrides = _own_folder(overrides)
    for override in overrides:
        key, separator, _ = override.partition("=")
        if not separator:
            raise InputError(f"{override!r} is no override: write key=value")
        if not key.startswith("+") and not _has(config, key):
            known = difflib.get_close_matches(key, _keys(config), n=1)
            hint = f", did you mean {known[0]}?" if known else ""
            raise InputError(f"the config has no key {key}{hint} (+{key}=... adds one)")
    return LazyConfig.apply_overrides(config, overrides)


def _own_folder(overrides: list[str]) -> list[str]:
    """``own_data=FOLDER`` as the key it stands for; it replaces paths that the config names."""
    short = [o.replace("own_data=", "own_data.folder=", 1) for o in overrides]
    if not any(o.startswith("own_data.folder=") and o != "own_data.folder=" for o in short):
        return short
    return [*(f"own_data.{key}=''" for key in PATHS), *short]


def read_own_data(config: DictConfig, kept: Path | None = None) -> Detection | None:
    """The user's data that a config names, checked; None where it names none.

    Args:
        config: Its ``own_data`` holds a folder or four paths, and how to take them.
        kept: Folder of a run whose data were checked before; if nothing has changed since, they are
            taken from there.

    Raises:
        InputError: Data are missing, or there is a problem with them.
    """
    own = config.get("own_data") or {}
    settings = {key: own.get(key) for key in ("folder", *PATHS)}
    if not any(settings.values()):
        return None
    masks = own.get("masks", True) and has_masks(config)
    places = [value for key, value in settings.items() if value and not key.endswith("_json")]
    files = [value for key, value in settings.items() if value and key.endswith("_json")]
    if kept is not None:
        data = Detection.load(kept, fingerprint(*places, read=filter(os.path.isfile, files)))
        if data is not None:
            return data
    data = read_detection(settings, exif=own.get("exif", "auto"), check=own.get("check", True))
    if masks:
        data.check_outlines()
    data.findings.stop_on_problems()
    data.source = fingerprint(*places, read=files)
    return data


def prepare_data(
    config: DictConfig, overrides: Sequence[str] = (), data: Detection | None = None
) -> None:
    """Register own data, set the class count, and check that all is there.

    Args:
        config: Changed in place.
        overrides: Those given by the user; a class count among them has to match the data.
        data: From ``read_own_data``.

    Raises:
        InputError: Data are missing, or the class count does not match them.
    """
    count_key = next((key for key in CLASS_COUNTS if _has(config, key)), None)
    if data is not None:
        register_own_data(data, Path(config.train.output_dir) / DATA)
        config.dataloader.train.dataset.names = OWN_TRAIN
        config.dataloader.train.dataset.filter_empty = False  # they train as negatives
        config.dataloader.test.dataset.names = OWN_VAL
        if count_key and not any(override.startswith(f"{count_key}=") for override in overrides):
            OmegaConf.update(config, count_key, len(data.classes))
        if not config.own_data.get("masks", True) and has_masks(config):
            remove_masks(config)
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


def has_masks(config: DictConfig) -> bool:
    """Whether a config's detector has a mask head."""
    return bool(OmegaConf.select(config, "model.roi_heads.mask_head"))


def remove_masks(config: DictConfig) -> None:
    """Turn a Mask R-CNN into the same without its mask head, for data with boxes only."""
    heads = config.model.roi_heads
    for key in ("mask_in_features", "mask_pooler", "mask_head"):
        heads[key] = None
    mapper = config.dataloader.train.mapper
    mapper.use_instance_mask = mapper.recompute_boxes = False


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
