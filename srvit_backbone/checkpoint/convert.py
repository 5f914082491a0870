"""Weights into a model: the prefix, names, position embedding, patches, steps and heads of a state
dict are fitted to an SRViT. What does not fit raises CheckpointError, and the LoadReport names
every tensor that was resized, dropped or left at its initial value.
"""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from srvit_backbone.checkpoint.plain_vit import (
    PATCH_EMBED,
    fit_patch_size,
    fold_blocks,
    in_timm_form,
    is_plain,
    warm_start_kind,
)
from srvit_backbone.checkpoint.pos_embed import fit_pos_embed, source_grid
from srvit_backbone.checkpoint.read import CheckpointError, StateDict, read, shorten, unwrap
from srvit_backbone.checkpoint.report import LoadReport
from srvit_backbone.errors import InputError
from srvit_backbone.timm_surface import TimmSurface

logger = logging.getLogger(__name__)

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


@dataclass
class Converted:
    """A state dict with exactly the model's names and shapes, and how it came about."""

    state: StateDict
    report: LoadReport


def load_checkpoint(
    model: TimmSurface,
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


def convert(
    state: Mapping[str, Tensor],
    model: TimmSurface,
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
        state = _fit_plain(state, model, fold if warm_start else "", report)

    recorded = state.pop(GRID_KEY, None)
    if state.get("pos_embed") is not None:
        tokens = sum(token in state for token in TOKENS)
        grid = source_grid(state["pos_embed"], recorded, tokens, model.grid_size, source)
        own = target["pos_embed"]
        state["pos_embed"], change = fit_pos_embed(state["pos_embed"], grid, own, model)
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
            f"{source} does not fit the model ({len(problems)} tensors): {shorten(problems)}"
        )
    if uniform:
        _make_uniform(result, report)
    return Converted(result, report)


def _strip_prefix(state: Mapping[str, Tensor], report: LoadReport) -> StateDict:
    prefixes = [name.removesuffix(ANCHOR) for name in state if name.endswith(ANCHOR)]
    if not prefixes:
        raise CheckpointError(
            f"{report.source} has no {ANCHOR}: not a ViT of this kind; "
            f"its names are {shorten(state)}"
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


def _fit_plain(state: StateDict, model: TimmSurface, fold: str, report: LoadReport) -> StateDict:
    """Bring a plain ViT into the model's form; ``fold`` is "" where no warm start was asked."""
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


def _may_lack(name: str, warm_start: bool | str) -> bool:
    """Whether a file may be without this tensor: heads, tokens, and at a warm start the mixture."""
    mixture = re.match(MIXTURE, name)
    return name in HEADS or name in TOKENS or (bool(warm_start) and mixture is not None)


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape))
