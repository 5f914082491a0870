"""Recipes: small YAML files of differences, merged and checked."""

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml
from omegaconf import DictConfig, OmegaConf

from srvit_backbone.errors import InputError
from srvit_backbone.training.stream import micro_batch_size
from srvit_backbone.variants import VARIANTS

BASE = "deit"
AMP = ("none", "bfloat16", "float16")


def load_recipe(folder: Path, names: list[str], overrides: list[str]) -> DictConfig:
    """The base recipe with the named differences and ``key=value`` overrides.

    Args:
        folder: Where the package's recipes are.
        names: Recipes of that folder by name, or files.
        overrides: Of the command line.

    Raises:
        InputError: A file is missing, a key unknown or a value out of range.
    """
    recipe = load_yaml(folder / f"{BASE}.yaml")
    known = set(map(str, recipe))
    for name in names:
        path = Path(name) if name.endswith(".yaml") else folder / f"{name}.yaml"
        if not path.is_file():
            have = ", ".join(sorted(p.stem for p in folder.glob("*.yaml")))
            raise InputError(f"no recipe {path}; there are {have}")
        recipe = _merge(recipe, load_yaml(path), known)
    for override in overrides:
        if "=" not in override:
            raise InputError(f"{override!r} is no override: write key=value")
    recipe = _merge(recipe, OmegaConf.from_dotlist(overrides), known)
    _check(recipe)
    return recipe


def load_yaml(path: Path) -> DictConfig:
    """A recipe as it stands in a file.

    Raises:
        InputError: The file is missing, or holds no keys.
    """
    try:
        content = OmegaConf.load(path)
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read as yaml: {error}") from None
    if not isinstance(content, DictConfig):
        raise InputError(f"{path} holds no recipe: write key: value, a line each")
    return content


def _merge(recipe: DictConfig, change: DictConfig, known: set[str]) -> DictConfig:
    for key in map(str, change):
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f", did you mean {close[0]}?" if close else ""
            raise InputError(f"a recipe has no key {key}{hint}")
    return cast(DictConfig, OmegaConf.merge(recipe, change))


def _check(recipe: DictConfig) -> None:
    if recipe.model not in VARIANTS:
        raise InputError(f"unknown model {recipe.model}: choose one of {', '.join(VARIANTS)}")
    if recipe.amp not in AMP:
        raise InputError(f"amp={recipe.amp}: must be one of {', '.join(AMP)}")
    for key in ("epochs", "batch_size", "max_batch_per_process", "img_size", "log_interval"):
        if not isinstance(recipe[key], int) or recipe[key] < 1:
            raise InputError(f"{key}={recipe[key]}: must be a whole number of 1 or more")
    if recipe.teacher and not recipe.distilled:
        raise InputError("a teacher needs distilled=true: the student has no head for its labels")
    if recipe.distilled and not recipe.teacher:
        raise InputError("distilled=true needs a teacher, e.g. teacher=regnety_160")


@dataclass
class BatchPlan:
    """How a step's images are spread: processes x accumulated micro-batches x images."""

    processes: int
    accumulation: int
    images: int

    def __str__(self) -> str:
        total = self.processes * self.accumulation * self.images
        return (
            f"{total} images a step: {self.processes} processes x {self.accumulation} "
            f"micro-batches x {self.images} images"
        )


def plan_batch(recipe: DictConfig, processes: int) -> BatchPlan:
    """Spread the recipe's batch over the processes, as few micro-batches as fit.

    Raises:
        InputError: The batch cannot be divided so.
    """
    share, rest = divmod(recipe.batch_size, processes)
    if rest or not share:
        raise InputError(
            f"batch_size={recipe.batch_size} is not a multiple of {processes} processes"
        )
    images = micro_batch_size(share, recipe.max_batch_per_process)
    return BatchPlan(processes, share // images, images)
