"""What timm's models can do beside ``forward``: features at chosen points, another classifier,
parameter groups, gradient checkpointing. SRViT is built on this.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from timm.layers import PatchEmbed
from torch import Tensor, nn

from srvit_backbone.arguments import INITS, check_pooling
from srvit_backbone.layer_depth import layer_depth, num_layers
from srvit_backbone.soft_mor import RecursiveUnit


class TimmSurface(nn.Module):
    """Methods of a timm model, for a model with the parts that are named here.

    Feature points, which all ``indices`` count: for T > 1 the output of each recursive unit, then
    of the last block; for T = 1 the output of each block.
    """

    blocks: nn.ModuleList
    norm: nn.Module
    head: nn.Module
    head_dist: nn.Module | None
    pos_embed: nn.Parameter
    patch_embed: PatchEmbed
    grid_size: tuple[int, int]
    patch_size: int
    num_prefix_tokens: int
    num_classes: int
    embed_dim: int
    global_pool: str
    unit_depths: tuple[int, ...]
    recursion_depth: int
    _first_feature: int

    def _embed(self, x: Tensor) -> tuple[Tensor, tuple[int, int]]:
        raise NotImplementedError

    def _run(self, index: int, x: Tensor, grid: tuple[int, int]) -> Tensor:
        raise NotImplementedError

    # --- features ----------------------------------------------------------------------

    def feature_blocks(self, indices: int | Sequence[int] | None = None) -> list[int]:
        """Positions in ``blocks`` of the feature points ``indices``."""
        points = range(self._first_feature, len(self.blocks))
        if indices is None:
            return list(points)
        chosen = range(-indices, 0) if isinstance(indices, int) else indices
        if not chosen or any(not -len(points) <= index < len(points) for index in chosen):
            raise ValueError(
                f"indices={indices}: there are {len(points)} feature points, 0 to {len(points) - 1}"
            )
        return [points[index] for index in chosen]

    def forward_intermediates(
        self,
        x: Tensor,
        indices: int | list[int] | tuple[int, ...] | None = None,
        return_prefix_tokens: bool = False,
        norm: bool = False,
        stop_early: bool = False,
        output_fmt: str = "NCHW",
        intermediates_only: bool = False,
    ) -> Any:
        """Features at chosen points of the network, in timm's form.

        Args:
            x: Image (B, in_chans, H, W).
            indices: Feature points (see the class), negative ones from the end; a number n means
                the last n; None means all.
            return_prefix_tokens: Give pairs (feature, prefix tokens (B, P, C)).
            norm: Apply the final norm to every feature.
            stop_early: Compute nothing behind the last point asked for; implied by
                ``intermediates_only``.
            output_fmt: "NCHW" for (B, C, H, W) or "NLC" for (B, N, C).
            intermediates_only: Leave out the final tokens.

        Returns:
            The list of features in order of depth, or (final tokens (B, P + N, C), that list).

        Raises:
            ValueError: An index or ``output_fmt`` is not one of these.
        """
        if output_fmt not in ("NCHW", "NLC"):
            raise ValueError(f"output_fmt={output_fmt!r}: must be 'NCHW' or 'NLC'")
        wanted = self.feature_blocks(indices)
        stop_early = stop_early or intermediates_only
        x, grid = self._embed(x)
        features: list[Any] = []
        for index in range(max(wanted) + 1 if stop_early else len(self.blocks)):
            x = self._run(index, x, grid)
            if index not in wanted:
                continue
            tokens = self.norm(x) if norm else x
            prefix, feature = tokens.split_with_sizes(
                [self.num_prefix_tokens, tokens.shape[1] - self.num_prefix_tokens], dim=1
            )
            if output_fmt == "NCHW":
                feature = to_spatial(feature, grid)
            features.append((feature, prefix) if return_prefix_tokens else feature)
        if intermediates_only:
            return features
        return self.norm(x), features

    def prune_intermediate_layers(
        self,
        indices: int | Sequence[int] = 1,
        prune_norm: bool = False,
        prune_head: bool = True,
    ) -> list[int]:
        """Remove what the feature points ``indices`` do not need; returns them, made positive."""
        wanted = self.feature_blocks(indices)
        self.blocks = self.blocks[: max(wanted) + 1]
        if prune_norm:
            self.norm = nn.Identity()
        if prune_head:
            self.num_classes = 0
            self.head = nn.Identity()
            self.head_dist = None
        return [index - self._first_feature for index in wanted]

    # --- parameters and classifier -----------------------------------------------------

    def layer_depth(self, name: str) -> int:
        """Depth of one of the model's parameters, see ``srvit_backbone.layer_depth``."""
        return layer_depth(name, self.unit_depths, self.recursion_depth)

    @torch.jit.ignore
    def no_weight_decay(self) -> set[str]:
        """Names of parameters that are not decayed although they are matrices."""
        return {"pos_embed", "cls_token", "dist_token"}

    @torch.jit.ignore
    def group_matcher(self, coarse: bool = False) -> Callable[[str], int]:
        """Layer grouping in timm's sense: a callable from a name to its depth."""
        if not coarse:
            return self.layer_depth
        last = num_layers(self.unit_depths)
        return lambda name: min(1, self.layer_depth(name)) + (self.layer_depth(name) > last)

    @torch.jit.ignore
    def set_grad_checkpointing(self, enable: bool | str = True) -> None:
        """Recompute every block application in the backward pass instead of storing it.

        Args:
            enable: "keep_attention" stores the outputs of fused attention nevertheless: at large
                images a good part of the recomputing is saved, for C values a token and block.

        Raises:
            ValueError: Another value.
        """
        if enable not in (False, True, "keep_attention"):
            raise ValueError(f"checkpointing {enable!r}: must be False, True or 'keep_attention'")
        self.grad_checkpointing = enable
        for block in self.blocks:
            if isinstance(block, RecursiveUnit):
                block.grad_checkpointing = enable

    @torch.jit.ignore
    def set_distilled_training(self, enable: bool = True) -> None:
        """In training return the pair of logits (a distilled model's default) or their mean."""
        if enable and self.head_dist is None:
            raise ValueError("distilled training needs a model built with distilled=True")
        self.distilled_training = enable

    @torch.jit.ignore
    def get_classifier(self) -> nn.Module | tuple[nn.Module, nn.Module]:
        """The classifier, or the pair of them."""
        return self.head if self.head_dist is None else (self.head, self.head_dist)

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        """Replace the classifier by a newly initialised one, 0 classes for none."""
        if global_pool is not None:
            check_pooling(global_pool, self.head_dist is not None)
            self.global_pool = global_pool
        self.num_classes = num_classes
        for name in ("head",) if self.head_dist is None else ("head", "head_dist"):
            head = self._make_head().to(self.pos_embed)
            if isinstance(head, nn.Linear):
                reset_linear(head)
            setattr(self, name, head)

    def _make_head(self) -> nn.Module:
        return nn.Linear(self.embed_dim, self.num_classes) if self.num_classes else nn.Identity()


def to_spatial(tokens: Tensor, grid: Sequence[int]) -> Tensor:
    """Patch tokens (B, N, C) -> map (B, C, grid H, grid W)."""
    return tokens.transpose(1, 2).unflatten(2, tuple(grid)).contiguous()


def reset_linear(linear: nn.Linear) -> None:
    nn.init.trunc_normal_(linear.weight, std=INITS["deit"])
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
