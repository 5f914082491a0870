"""A config of either framework: which one it is, and its model without weights."""

import re
from pathlib import Path
from typing import Any

import torch

from srvit_backbone.errors import InputError


def config_folder(kind: str) -> Path:
    """Where the shipped configs are: in the checkout, or inside an installed package.

    Args:
        kind: "detection", "segmentation", or "pretrained" for the recipes.
    """
    package = Path(__file__).parents[1]
    installed = package / "configs" / kind
    inside = "recipes" if kind == "pretrained" else "configs"
    return installed if installed.is_dir() else package.parent / kind / inside


def is_segmentation(config_file: str | Path) -> bool:
    """Whether a config is one of MMEngine, and not a LazyConfig of Detectron2.

    Raises:
        InputError: There is no such file.
    """
    path = Path(config_file)
    if not path.is_file():
        raise InputError(f"no config file {path}")
    return re.search(r"^(_base_|default_scope)\s*=", path.read_text(), re.MULTILINE) is not None


def build_detector(config_file: str | Path, device: str = "cpu") -> Any:
    """The detector of a LazyConfig, with random weights."""
    from srvit_backbone.detectron2.config import build_model, load_config

    config = load_config(str(config_file), [])
    config.train.device = device
    with torch.device(device):
        return build_model(config)


def build_segmentor(config_file: str | Path, device: str = "cpu") -> Any:
    """The segmentor of an MMEngine config, with random weights."""
    from mmengine.config import Config
    from mmengine.registry import init_default_scope
    from mmseg.registry import MODELS

    config = Config.fromfile(config_file)
    init_default_scope(config.default_scope)
    config.model.backbone.update(pretrained=None, init_cfg=None)
    with torch.device(device):
        return MODELS.build(config.model)
