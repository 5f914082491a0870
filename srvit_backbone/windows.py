"""Window attention for large images: the same blocks and weights, run on pieces of the grid."""

import torch
import torch.nn.functional as F
from torch import Tensor


class Windows:
    """Square windows over a grid of tokens, of one forward pass.

    A block run on them lets each patch attend to its window and the prefix tokens. Every window
    has its own copies of the prefix tokens, so that these attend everywhere; behind the block they
    are averaged. Cells that fill up the last row and column of windows are hidden from attention.

    Args:
        size: Side of a window in tokens.
        grid: Height and width of the grid in tokens.
        num_prefix_tokens: Prefix tokens P in front of the patches.
    """

    def __init__(self, size: int, grid: tuple[int, int], num_prefix_tokens: int) -> None:
        # No larger than the grid: one window is the whole, and the block is the global one.
        self.window = tuple(min(size, side) for side in grid)
        self.grid = grid
        self.num_prefix_tokens = num_prefix_tokens
        self.rows, self.columns = (
            -(-side // cells) for side, cells in zip(grid, self.window, strict=True)
        )
        self.padding = (
            0,
            self.columns * self.window[1] - grid[1],
            0,
            self.rows * self.window[0] - grid[0],
        )
        self._mask: Tensor | None = None

    def split(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Tokens (B, P + N, C) -> windows (B * W, P + S * S, C) and what attention may see there.

        The mask is (B * W, 1, 1, P + S * S), or None where the windows fill the grid exactly.
        """
        prefix, patches = x.tensor_split([self.num_prefix_tokens], dim=1)
        patches = self._pieces(patches)
        prefix = prefix.repeat_interleave(self.rows * self.columns, dim=0)
        if any(self.padding) and self._mask is None:  # once for all blocks of a unit
            inside = self._pieces(x.new_ones(1, self.grid[0] * self.grid[1], 1)).bool()
            mask = F.pad(inside[..., 0], (self.num_prefix_tokens, 0), value=True)
            self._mask = mask.repeat(x.shape[0], 1)[:, None, None]
        return torch.cat([prefix, patches], dim=1), self._mask

    def join(self, x: Tensor) -> Tensor:
        """Windows (B * W, P + S * S, C) -> tokens (B, P + N, C)."""
        channels = x.shape[-1]
        prefix, patches = x.tensor_split([self.num_prefix_tokens], dim=1)
        prefix = prefix.unflatten(0, (-1, self.rows * self.columns)).mean(dim=1)
        patches = patches.reshape(-1, self.rows, self.columns, *self.window, channels)
        patches = patches.transpose(2, 3).flatten(3, 4).flatten(1, 2)
        patches = patches[:, : self.grid[0], : self.grid[1]].flatten(1, 2)
        return torch.cat([prefix, patches], dim=1)

    def _pieces(self, patches: Tensor) -> Tensor:
        """(B, N, C) -> (B * W, S * S, C)."""
        batch, _, channels = patches.shape
        patches = patches.reshape(batch, *self.grid, channels)
        if any(self.padding):
            patches = F.pad(patches, (0, 0, *self.padding))
        height, width = self.window
        patches = patches.reshape(batch, self.rows, height, self.columns, width, channels)
        return patches.transpose(2, 3).reshape(-1, height * width, channels)
