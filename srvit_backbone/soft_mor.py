"""Soft Mixture-of-Recursions (SoftMoR), section 3.2 of the SR-ViT paper (arXiv 2607.00774).

The paper's text gives: one router per recursive unit that maps the unit's input to token-wise
mixture weights (``Z = G(X^(0))``, ``X_out = sum_t alpha^(t) X^(t)``) and a residual token-wise
linear Step Transform with its own weights per transition. What the text leaves open - LayerNorm
then one Linear as the router, one LayerNorm on what is mixed, shared by the steps of a unit - was
recovered by fitting every printed parameter and FLOP count of Tables 2-5.

Tokens are ``(B, N, C)`` throughout; class and distillation tokens are tokens like the others.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from srvit_backbone.windows import Windows

AGGREGATIONS = ("soft", "hard", "last")
LayerNorm = partial(nn.LayerNorm, eps=1e-6)


class SoftRouter(nn.Module):
    """Mixture weights of each token over the recursion steps, from the unit's input only.

    Args:
        dim: Channels C of a token.
        recursion_depth: Number of steps T.
        hard: One-hot weights on the step with the highest score (Table 6), with the
            straight-through gradient of the softmax: our choice, the paper names none.
    """

    def __init__(self, dim: int, recursion_depth: int, hard: bool = False) -> None:
        super().__init__()
        self.norm = LayerNorm(dim)
        self.proj = nn.Linear(dim, recursion_depth)
        self.hard = hard

    def forward(self, x: Tensor, steps: int | None = None) -> Tensor:
        """(B, N, C) -> (B, N, T), weights that sum to 1 over T.

        Args:
            x: Tokens.
            steps: Give the weights of the first steps only, renormalised.
        """
        weights = self.proj(self.norm(x))[..., :steps].softmax(dim=-1)
        if self.hard:
            # `weights - weights.detach()` is exactly 0, so the weights stay exactly one-hot.
            one_hot = F.one_hot(weights.argmax(dim=-1), weights.shape[-1]).to(weights.dtype)
            weights = one_hot + (weights - weights.detach())
        return weights


class StepTransform(nn.Module):
    """Token-wise linear map with a residual, between two recursion steps (Fig. 2c).

    Args:
        dim: Channels C of a token.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, C) -> (B, N, C)."""
        return x + self.proj(x)


class RecursiveUnit(nn.Module):
    """Blocks applied T times, the outputs of all steps mixed per token (Fig. 2a-c).

    Every block is registered once and called T times, so parameters, gradients and checkpoints
    hold each shared weight once.

    Args:
        blocks: Modules (B, N, C) -> (B, N, C), in order. With ``share_blocks=False`` the T
            independent copies one after the other.
        dim: Channels C of a token.
        recursion_depth: Number of steps T, at least 2.
        aggregation: ``"soft"`` mixes all steps, ``"hard"`` takes each token from the step with the
            highest score (Table 6), ``"last"`` is naive recursion (Table 5).
        step_transform: Put a StepTransform between consecutive steps.
        share_blocks: Use the same blocks in every step. False is Table 5's "Non-recursive + Soft
            Mixture".

    Raises:
        ValueError: An argument is outside its range.
    """

    def __init__(
        self,
        blocks: Sequence[nn.Module],
        dim: int,
        recursion_depth: int,
        aggregation: str = "soft",
        step_transform: bool = True,
        share_blocks: bool = True,
    ) -> None:
        super().__init__()
        if recursion_depth < 2:
            raise ValueError(
                f"recursion_depth={recursion_depth}: a recursive unit needs at least 2"
            )
        if aggregation not in AGGREGATIONS:
            raise ValueError(f"aggregation={aggregation!r}: must be one of {AGGREGATIONS}")
        copies = 1 if share_blocks else recursion_depth
        if not blocks or len(blocks) % copies:
            raise ValueError(f"{len(blocks)} blocks cannot be split over {copies} steps")

        self.recursion_depth = recursion_depth
        self.steps = recursion_depth  # fewer leave out the last ones, see SRViT.set_steps
        self.depth = len(blocks) // copies
        self.share_blocks = share_blocks
        self.grad_checkpointing: bool | str = False
        self.blocks = nn.ModuleList(blocks)
        self.step_transforms = nn.ModuleList(
            StepTransform(dim) if step_transform else nn.Identity()
            for _ in range(recursion_depth - 1)
        )
        mixes = aggregation != "last"
        self.router = SoftRouter(dim, recursion_depth, aggregation == "hard") if mixes else None
        self.norm = LayerNorm(dim) if mixes else None

    def run_step(self, x: Tensor, step: int, windows: Windows | None = None) -> Tensor:
        """Step ``step`` (from 0) of the recursion, (B, N, C) -> (B, N, C)."""
        if step > 0:
            x = self.step_transforms[step - 1](x)
        first = 0 if self.share_blocks else step * self.depth
        for index in range(first, first + self.depth):
            # The unit ends with global attention.
            end = step + 1 == self.steps and index + 1 == first + self.depth
            x = run_block(self.blocks[index], x, self.grad_checkpointing, None if end else windows)
        return x

    def forward(self, x: Tensor, windows: Windows | None = None) -> Tensor:
        """(B, N, C) -> (B, N, C).

        Args:
            x: Tokens.
            windows: Run all blocks on these windows but the last block of the last step.
        """
        if self.router is None or self.norm is None:
            for step in range(self.steps):
                x = self.run_step(x, step, windows)
            return x
        weights = self.router(x, self.steps)  # (B, N, T)
        # Accumulated step by step: stacking the steps would hold T feature maps at once.
        mixture = x.new_zeros(())
        for step in range(self.steps):
            x = self.run_step(x, step, windows)
            share = weights[..., step : step + 1]
            if self.grad_checkpointing and torch.is_grad_enabled():
                # Else the normalised tokens of every step are stored.
                mixture = checkpoint(_mix, mixture, share, x, self.norm, use_reentrant=False)
            else:
                mixture = _mix(mixture, share, x, self.norm)
        return mixture


def _mix(mixture: Tensor, share: Tensor, x: Tensor, norm: nn.Module) -> Tensor:
    return torch.addcmul(mixture, share, norm(x))


def run_block(
    block: nn.Module, x: Tensor, grad_checkpointing: bool | str, windows: Windows | None = None
) -> Tensor:
    """Apply a block, recomputing its activations in the backward pass if asked.

    Args:
        block: A ViT block.
        x: Tokens (B, N, C).
        grad_checkpointing: False stores all activations, True recomputes them, "keep_attention"
            (torch 2.5 or later) recomputes all but the outputs of fused attention.
        windows: Run the block on these windows.
    """

    def run(x: Tensor) -> Tensor:
        if windows is None:
            return block(x)
        pieces, mask = windows.split(x)
        return windows.join(block(pieces, attn_mask=mask))

    if not grad_checkpointing or not torch.is_grad_enabled():
        return run(x)
    # The non-re-entrant kind only: the re-entrant one marks a parameter ready once per call, which
    # stops DistributedDataParallel as soon as a block is used twice.
    if grad_checkpointing == "keep_attention":
        uncached = _without_autocast_cache(run)
        return checkpoint(uncached, x, use_reentrant=False, context_fn=_keep_attention)
    return checkpoint(run, x, use_reentrant=False)


def _without_autocast_cache(run: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """``run`` that casts its weights anew, as recomputing them in the backward pass does.

    Selective checkpointing counts the operations of both; a block that runs again finds its cast
    weights in autocast's cache, which is empty in the backward pass.
    """

    def uncached(x: Tensor) -> Tensor:
        kind = x.device.type
        if not torch.is_autocast_enabled(kind):
            return run(x)
        with torch.autocast(kind, torch.get_autocast_dtype(kind), cache_enabled=False):
            return run(x)

    return uncached


def _keep_attention() -> tuple[Any, Any]:
    from torch.utils.checkpoint import create_selective_checkpoint_contexts

    aten = torch.ops.aten
    names = (
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
    )
    return create_selective_checkpoint_contexts(
        [getattr(aten, name).default for name in names if hasattr(aten, name)]
    )
