"""Weights in: read a file safely, unwrap it, fit it to a model, load it and report what happened.

Accepted: torch files and safetensors; the bare state dict or one under a usual key; any prefix in
front of the backbone; this package's names, or the plain ViT names of timm and facebookresearch's
DeiT. Nothing is skipped silently: what does not fit raises CheckpointError, and the LoadReport
names every tensor that was resized, dropped or left at its initial value.
"""

import argparse
import logging
import math
import os
import pickle
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from timm.layers import resample_abs_pos_embed
from torch import Tensor, nn

from srvit_backbone.errors import InputError
from srvit_backbone.plain_vit import (
    PATCH_EMBED,
    fit_patch_size,
    fold_blocks,
    in_timm_form,
    is_plain,
    warm_start_kind,
)

logger = logging.getLogger(__name__)

StateDict = dict[str, Tensor]

# Where the weights are in files people have, the averaged ones first (timm's choice as well).
EMA_KEYS = ("state_dict_ema", "model_ema", "ema_state_dict")
RAW_KEYS = ("state_dict", "model")
# The one name that every ViT of timm's naming has; what stands before it is the prefix.
ANCHOR = "patch_embed.proj.weight"
HEADS = ("head.weight", "head.bias", "head_dist.weight", "head_dist.bias")
TOKENS = ("cls_token", "dist_token")
# What a recursive unit has beyond its blocks.
MIXTURE = r"blocks\.\d+\.(router|step_transforms|norm)\."
# What has to be 0 for each step to be the plain network and all to weigh alike.
UNIFORM = r"blocks\.\d+\.(router|step_transforms\.\d+)\.proj\."
# Facts about a file rather than weights.
GRID_KEY = "pos_embed_grid"


class _Ignored:
    """Stands in for what a file holds beside weights and is never used; takes any form."""

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass


# What published and own files contain beside tensors; nothing of it is executed by loading. DeiT's
# have an argparse.Namespace, training loops leave NumPy numbers, MMEngine's have its log buffers,
# which load as nothing.
SAFE_GLOBALS = (
    argparse.Namespace,
    np.array(0).__reduce__()[0],
    np.float64(0).__reduce__()[0],
    np.ndarray,
    np.dtype,
    *(type(np.dtype(kind)) for kind in "?bBhHiIlLqQefd"),
    *(
        (_Ignored, name)
        for name in (
            "mmengine.logging.history_buffer.HistoryBuffer",
            "builtins.getattr",
            "builtins.slice",
        )
    ),
)


class CheckpointError(InputError):
    """The file cannot be read, is not of an SR-ViT or ViT, or does not fit the model."""


@dataclass
class LoadReport:
    """What was done with every tensor.

    Attributes:
        source: The file, and the key inside it.
        loaded: Names that were taken as they are.
        resized: name -> what was done, e.g. "14x14 -> 64x64".
        initialised: Names the file does not have; they keep the model's initial values.
        dropped: Names in the file that the model has no use for.
        zeroed: Of those the file does not have: set to 0, for a uniform mixture.
        folded: Which blocks of a plain ViT went where.
    """

    source: str
    loaded: list[str] = field(default_factory=list)
    resized: dict[str, str] = field(default_factory=dict)
    initialised: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    zeroed: list[str] = field(default_factory=list)
    folded: str = ""

    def __str__(self) -> str:
        taken = len(self.loaded) + len(self.resized)
        every = taken + len(self.initialised) + len(self.zeroed)
        lines = [f"{taken} of {every} tensors loaded from {self.source}"]
        if self.folded:
            lines.append(self.folded)
        if self.resized:
            lines.append("resized: " + ", ".join(f"{k} ({v})" for k, v in self.resized.items()))
        if self.zeroed:
            lines.append("set to 0 for a uniform mixture: " + _shorten(self.zeroed))
        if self.initialised:
            lines.append("left at initial values: " + _shorten(self.initialised))
        if self.dropped:
            lines.append("not used: " + _shorten(self.dropped))
        return "; ".join(lines)


@dataclass
class Converted:
    """A state dict with exactly the model's names and shapes, and how it came about."""

    state: StateDict
    report: LoadReport


def load_checkpoint(
    model: nn.Module,
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    warm_start: bool | str = False,
    use_ema: bool = True,
    name: str = "a state dict",
) -> LoadReport:
    """Load weights into an SRViT; all of them, or none and an error.

    Classifier heads of another class count and tokens that the file lacks keep the model's initial
    values; the position embedding is resampled to the model's grid. All else has to match.

    Args:
        model: The SRViT to fill.
        source: A file, or an object as such a file holds it.
        warm_start: Allow the blocks of a plain ViT in a recursive model: its router, step
            transforms and mixture norms then keep their initial values. Also allow another number
            of recursion steps: those that both have are kept, further ones keep initial values.
            True or one of ``plain_vit.WARM_STARTS``, which say how more blocks come onto fewer and
            whether the mixture starts uniform.
        use_ema: Prefer averaged weights where a file has both.
        name: What messages call a source that is not a file.

    Returns:
        What was done, which is logged too.

    Raises:
        CheckpointError: See the class.
    """
    where = os.fspath(source) if isinstance(source, str | os.PathLike) else name
    content = source if isinstance(source, Mapping) else read(source)
    state, key = unwrap(content, use_ema)
    converted = convert(state, model, warm_start=warm_start, source=where + key)
    model.load_state_dict(converted.state)
    logger.info("%s", converted.report)
    return converted.report


def read(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Content of a checkpoint file; tensors on the CPU. Never executes code from the file.

    Raises:
        CheckpointError: There is no such file, it is damaged, or it holds code.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise CheckpointError(f"no checkpoint at {path}")
    try:
        if path.endswith(".safetensors"):
            return load_file(path)
        with torch.serialization.safe_globals(list(SAFE_GLOBALS)):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        name = re.search(r"GLOBAL (\S+)", str(error))
        reason = f"it holds objects that are not tensors ({name[1]})" if name else "it is damaged"
        raise CheckpointError(f"{path} was refused: {reason}") from error
    except (
        RuntimeError,
        EOFError,
        OSError,
        ValueError,
        zipfile.BadZipFile,
        SafetensorError,
    ) as error:
        raise CheckpointError(f"{path} is damaged or not a checkpoint file") from error
    if not isinstance(content, Mapping):
        raise CheckpointError(f"{path} holds a {type(content).__name__}, not weights by name")
    return content


def unwrap(content: Mapping[str, Any], use_ema: bool = True) -> tuple[StateDict, str]:
    """The state dict inside a checkpoint's content, and the key it was under, as " [key]".

    Raises:
        CheckpointError: There are no tensors under any known key.
    """
    keys = EMA_KEYS + RAW_KEYS if use_ema else RAW_KEYS + EMA_KEYS
    for key in keys:
        inner = content.get(key)
        if isinstance(inner, Mapping) and inner:
            return unwrap(inner, use_ema)[0], f" [{key}]"
    state = {name: value for name, value in content.items() if isinstance(value, Tensor)}
    if not state:
        raise CheckpointError(
            f"no tensors found; the top-level names are {_shorten([str(k) for k in content])}"
        )
    return state, ""


def convert(
    state: Mapping[str, Tensor],
    model: nn.Module,
    *,
    warm_start: bool | str = False,
    source: str = "a state dict",
) -> Converted:
    """Fit a state dict to an SRViT: prefix, names, position embedding, heads.

    Args and errors: see load_checkpoint.
    """
    report = LoadReport(source)
    state = _strip_prefix(state, report)
    target = model.state_dict()

    fold, uniform = warm_start_kind(warm_start)
    if is_plain(state):
        state = _fit_plain(state, model, warm_start and fold, report)

    recorded = state.pop(GRID_KEY, None)
    if state.get("pos_embed") is not None:
        tokens = sum(token in state for token in TOKENS)
        grid = _source_grid(state["pos_embed"], recorded, tokens, model.grid_size, source)
        own = target["pos_embed"]
        state["pos_embed"], change = _fit_pos_embed(state["pos_embed"], grid, own, model)
        if change:
            report.resized["pos_embed"] = change

    if warm_start:
        _fit_steps(state, target, report)

    result: StateDict = {}
    problems: list[str] = []
    for name, own in target.items():
        value = state.pop(name, None)
        if value is not None and value.shape == own.shape:
            result[name] = value
            if name not in report.resized:
                report.loaded.append(name)
            continue
        result[name] = own  # what does not fit is an error, unless the name may be lacking
        if name == GRID_KEY:
            continue
        report.initialised.append(name)
        if value is None and not _may_lack(name, warm_start):
            problems.append(f"{name} is missing")
        elif value is not None:
            report.dropped.append(name)
            if name not in HEADS:
                problems.append(f"{name} is {_shape(value)}, the model's is {_shape(own)}")
    for name in state:
        report.dropped.append(name)
        if name not in HEADS and name not in TOKENS:
            problems.append(f"{name} is unknown to the model")
    if problems:
        raise CheckpointError(
            f"{source} does not fit the model ({len(problems)} tensors): {_shorten(problems)}"
        )
    if uniform:
        _make_uniform(result, report)
    return Converted(result, report)


def resize_pos_embed(
    pos_embed: Tensor,
    old_grid: tuple[int, int],
    new_grid: tuple[int, int],
    initial: Tensor,
) -> Tensor:
    """Resample a position embedding to another grid and number of prefix tokens.

    The grid part is resampled bicubically (align_corners False, no antialiasing). Prefix rows that
    both have are copied, further ones of the source dropped, further ones of the target taken from
    ``initial``.

    Args:
        pos_embed: (1, P_old + H_old W_old, C).
        old_grid: (H_old, W_old).
        new_grid: (H_new, W_new).
        initial: (1, P_new + H_new W_new, C), the target's initial values.
    """
    old_prefix = pos_embed.shape[1] - math.prod(old_grid)
    new_prefix = initial.shape[1] - math.prod(new_grid)
    grid_rows = resample_abs_pos_embed(
        pos_embed[:, old_prefix:], new_grid, old_grid, num_prefix_tokens=0, antialias=False
    )
    common = min(old_prefix, new_prefix)
    rows = [pos_embed[:, :common], initial[:, common:new_prefix], grid_rows]
    return torch.cat([part.to(initial) for part in rows], dim=1)


def _strip_prefix(state: Mapping[str, Tensor], report: LoadReport) -> StateDict:
    prefixes = [name.removesuffix(ANCHOR) for name in state if name.endswith(ANCHOR)]
    if not prefixes:
        raise CheckpointError(
            f"{report.source} has no {ANCHOR}: not a ViT of this kind; "
            f"its names are {_shorten(state)}"
        )
    if len(prefixes) > 1:
        raise CheckpointError(
            f"{report.source} holds several backbones ({', '.join(prefixes)}): "
            "save the wanted one alone"
        )
    prefix = prefixes[0]
    report.dropped.extend(name for name in state if not name.startswith(prefix))
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }


def _fit_plain(
    state: StateDict, model: nn.Module, fold: str | bool, report: LoadReport
) -> StateDict:
    """Bring a plain ViT into the model's form; ``fold`` is False where no warm start was asked."""
    state, dropped = in_timm_form(state)
    report.dropped.extend(dropped)
    change = fit_patch_size(state, tuple(model.patch_embed.patch_size))
    if change:
        report.resized[PATCH_EMBED] = change
    if model.recursion_depth > 1 and not fold:
        raise CheckpointError(
            f"{report.source} is a plain ViT, the model has recursive units "
            f"(T = {model.recursion_depth}): ask for a warm start to keep its blocks and "
            "initialise the rest, or choose T = 1"
        )
    if not fold:
        return state
    try:
        state, report.folded = fold_blocks(state, model, fold)
    except InputError as error:
        raise CheckpointError(f"{report.source}: {error}") from None
    return state


def _make_uniform(state: StateDict, report: LoadReport) -> None:
    """Set what the file lacks of routers and step transforms to 0, in place."""
    for name in [name for name in report.initialised if re.match(UNIFORM, name)]:
        state[name] = torch.zeros_like(state[name])
        report.initialised.remove(name)
        report.zeroed.append(name)


def _fit_steps(state: StateDict, target: Mapping[str, Tensor], report: LoadReport) -> None:
    """Fit routers and step transforms to another number of recursion steps, in place.

    A router's rows and the transforms of the steps that both have are kept; further ones start at
    the model's initial values, or are dropped.
    """
    for name in [name for name in state if re.match(MIXTURE, name)]:
        own, value = target.get(name), state[name]
        if own is None:
            report.dropped.append(name)
            del state[name]
        elif "router.proj" in name and value.shape[1:] == own.shape[1:] and len(value) != len(own):
            common = min(len(value), len(own))
            state[name] = torch.cat([value[:common].to(own), own[common:]])
            report.resized[name] = f"{len(value)} -> {len(own)} steps"


def _fit_pos_embed(
    value: Tensor, grid: tuple[int, int], own: Tensor, model: nn.Module
) -> tuple[Tensor, str]:
    if value.shape[-1] != own.shape[-1] or (grid == model.grid_size and value.shape == own.shape):
        return value, ""  # another width is reported with the other misfits
    prefix = value.shape[1] - math.prod(grid)
    change = f"{grid[0]}x{grid[1]} -> {model.grid_size[0]}x{model.grid_size[1]}"
    if prefix != model.num_prefix_tokens:
        change += f", {prefix} -> {model.num_prefix_tokens} prefix tokens"
    return resize_pos_embed(value, grid, model.grid_size, own), change


def _source_grid(
    pos_embed: Tensor,
    recorded: Tensor | None,
    tokens: int,
    model_grid: tuple[int, int],
    source: str,
) -> tuple[int, int]:
    """Grid of a file's position embedding: as recorded, else square, as all published ones are.

    Of its rows as many are prefix tokens as the file has, else 0 to 2; the model's own grid decides
    only where no square fits.
    """
    if recorded is not None:
        return int(recorded[0]), int(recorded[1])
    rows = pos_embed.shape[-2]
    for prefix in (tokens, 1, 2, 0):
        side = math.isqrt(max(rows - prefix, 0))
        if side > 0 and side * side == rows - prefix:
            return side, side
        if prefix == tokens and rows - prefix == math.prod(model_grid):
            return model_grid
    raise CheckpointError(
        f"{source}: pos_embed has {rows} rows, which is no square grid with 0, 1 or 2 prefix tokens"
    )


def _may_lack(name: str, warm_start: bool) -> bool:
    """Whether a file may be without this tensor: heads, tokens, and at a warm start the mixture."""
    mixture = re.match(MIXTURE, name)
    return name in HEADS or name in TOKENS or (warm_start and mixture is not None)


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape))


def _shorten(names: Any, limit: int = 8) -> str:
    names = list(names)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
