"""Weights of plain ViTs made fit for SR-ViT: other makers' names, and more blocks onto fewer."""

import re

import torch
from timm.layers import resample_patch_embed
from torch import Tensor

from srvit_backbone.errors import InputError
from srvit_backbone.timm_surface import TimmSurface

StateDict = dict[str, Tensor]

# How the blocks of a plain ViT come into a recursive model; True is the first. With "uniform" the
# step transforms and routers start at 0: the model begins as the plain network, run T times, whose
# normalised steps are averaged.
WARM_STARTS = ("stepwise", "average", "stepwise, uniform", "average, uniform")
# What other ViTs have and a backbone has no use for: masked pretraining, DINOv2's registers.
UNUSED = re.compile(r"(mask_token|register_tokens|reg_token|decoder_\w+)(\.|$)")
LAYER_SCALES = {"ls1": "attn.proj", "ls2": "mlp.fc2"}
PATCH_EMBED = "patch_embed.proj.weight"


def warm_start_kind(warm_start: bool | str) -> tuple[str, bool]:
    """("stepwise" or "average", whether the mixture starts uniform) of a setting.

    Raises:
        InputError: It is none of WARM_STARTS, True or False.
    """
    if not isinstance(warm_start, str):
        return WARM_STARTS[0], False
    if warm_start not in WARM_STARTS:
        raise InputError(
            f"warm_start={warm_start!r}: must be true, false or one of "
            + ", ".join(map(repr, WARM_STARTS))
        )
    fold, _, mixture = warm_start.partition(", ")
    return fold, mixture == "uniform"


def is_plain(state: StateDict) -> bool:
    """Whether these are weights of a ViT without recursive units."""
    return not any(re.match(r"blocks\.\d+\.blocks\.", name) for name in state)


def in_timm_form(state: StateDict) -> tuple[StateDict, list[str]]:
    """DeiT's, MAE's, DINOv2's or timm's weights in the form of timm's VisionTransformer.

    DINOv2's chunks of blocks are numbered through, and a layer scale is multiplied into the linear
    map before it, which computes the same.

    Returns:
        The weights, and the names of those left out.
    """
    state = {
        re.sub(r"^blocks\.\d+\.(?=\d+\.)", "blocks.", name): value for name, value in state.items()
    }
    dropped = [name for name in state if UNUSED.match(name)]
    for name in dropped:
        del state[name]
    for name in [name for name in state if re.search(r"\.ls[12]\.gamma$", name)]:
        block, scale, _ = name.rsplit(".", 2)
        gamma, linear = state.pop(name), f"{block}.{LAYER_SCALES[scale]}"
        state[f"{linear}.weight"] = state[f"{linear}.weight"] * gamma[:, None]
        state[f"{linear}.bias"] = state[f"{linear}.bias"] * gamma
    return state, dropped


def fit_patch_size(state: StateDict, size: tuple[int, int]) -> str:
    """Resample the patch embedding in place; returns what was done, "" for nothing."""
    weight = state[PATCH_EMBED]
    old = tuple(weight.shape[-2:])
    if weight.ndim != 4 or old == size:
        return ""
    state[PATCH_EMBED] = resample_patch_embed(weight.float(), list(size)).to(weight.dtype)
    return f"patches {old[0]}x{old[1]} -> {size[0]}x{size[1]}"


def count_blocks(state: StateDict) -> int:
    """Blocks of a plain ViT."""
    return 1 + max(int(m[1]) for name in state if (m := re.match(r"blocks\.(\d+)\.", name)))


def fold_blocks(state: StateDict, model: TimmSurface, fold: str) -> tuple[StateDict, str]:
    """The blocks of a plain ViT under the names of a model with as many unique ones, or fewer.

    Args:
        state: In timm's form.
        model: The SRViT.
        fold: Of more blocks onto fewer: "stepwise" takes evenly spaced ones, the first and the last
            among them; "average" the mean of as many runs of neighbours.

    Returns:
        The weights, and which block went where.

    Raises:
        InputError: The file has fewer blocks than the model.
    """
    targets: dict[int, list[str]] = {}
    for name in model.state_dict():
        match = re.match(r"(blocks\.\d+(?:\.blocks\.\d+)?)\.norm1\.weight$", name)
        if match:  # several names for one depth where the steps do not share their blocks
            targets.setdefault(model.layer_depth(name) - 1, []).append(match[1])
    have, want = count_blocks(state), len(targets)
    if have < want:
        raise InputError(f"it has {have} blocks, the model {want}: a warm start needs as many")
    groups = _groups(have, want, fold)
    folded = {name: value for name, value in state.items() if not name.startswith("blocks.")}
    suffixes = [name.removeprefix("blocks.0.") for name in state if name.startswith("blocks.0.")]
    for target, group in enumerate(groups):
        for suffix in suffixes:
            value = _mean([state[f"blocks.{block}.{suffix}"] for block in group])
            for prefix in targets[target]:
                folded[f"{prefix}.{suffix}"] = value
    if have == want:
        return folded, f"{have} blocks onto {want}"
    which = ", ".join("+".join(map(str, group)) for group in groups)
    return folded, f"{have} blocks onto {want}, {fold}: {which}"


def _groups(have: int, want: int, fold: str) -> list[list[int]]:
    if fold == "average":
        edges = [i * have // want for i in range(want + 1)]
        return [list(range(*pair)) for pair in zip(edges, edges[1:], strict=False)]
    return [[round(i * (have - 1) / max(want - 1, 1))] for i in range(want)]


def _mean(values: list[Tensor]) -> Tensor:
    if len(values) == 1:
        return values[0]
    return torch.stack([value.float() for value in values]).mean(0).to(values[0].dtype)
