"""The position embedding of a file, resampled to the model's grid and number of prefix tokens."""

import math

import torch
from timm.layers import resample_abs_pos_embed
from torch import Tensor

from srvit_backbone.checkpoint.read import CheckpointError
from srvit_backbone.timm_surface import TimmSurface


def fit_pos_embed(
    value: Tensor, grid: tuple[int, int], own: Tensor, model: TimmSurface
) -> tuple[Tensor, str]:
    if value.shape[-1] != own.shape[-1] or (grid == model.grid_size and value.shape == own.shape):
        return value, ""  # another width is reported with the other misfits
    prefix = value.shape[1] - math.prod(grid)
    change = f"{grid[0]}x{grid[1]} -> {model.grid_size[0]}x{model.grid_size[1]}"
    if prefix != model.num_prefix_tokens:
        change += f", {prefix} -> {model.num_prefix_tokens} prefix tokens"
    return resize_pos_embed(value, grid, model.grid_size, own), change


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


def source_grid(
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
