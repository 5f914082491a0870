"""SR-ViT, "Soft Mixture-of-Recursions: Going Deeper with Recursive Vision Transformers"
(arXiv 2607.00774): a ViT whose inner blocks form recursive units, each applied T times.

Tokens are ``(B, P + N, C)``: P prefix tokens (class, then distillation if any), then the N = H x W
patches row by row. Only the patch embedding and the outputs that say so are spatial.
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from timm.layers import PatchEmbed, resample_abs_pos_embed, to_2tuple
from timm.models.vision_transformer import Block
from torch import Tensor, nn

from srvit_backbone.arguments import INITS, check_arguments, check_pooling
from srvit_backbone.layer_depth import num_layers, stage_depths
from srvit_backbone.soft_mor import LayerNorm, RecursiveUnit, run_block
from srvit_backbone.timm_surface import TimmSurface, reset_linear, to_spatial
from srvit_backbone.windows import Windows


class SRViT(TimmSurface):
    """Soft Recursive Vision Transformer (section 3.1 and Fig. 2a).

    ``blocks`` holds the first block, then the recursive units, then the last block. With T = 1
    there are no units and ``blocks`` is a plain list: the model is DeiT, with timm's names. The
    first and last block being plain, the units coarse-to-fine and all blocks DeiT's is the paper's
    text; the unit depths were recovered from its tables.

    Features, parameter groups and classifier as timm's models have them: see TimmSurface.

    Args:
        img_size: Native image height and width in pixels. Any other size is accepted: the position
            embedding is resampled to its grid, a remainder of a patch padded right and below.
        patch_size: Patch height and width in pixels.
        in_chans: Image channels.
        num_classes: Outputs of the classifier; 0 for none.
        embed_dim: Token channels C, a multiple of ``num_heads``.
        num_heads: Attention heads.
        unit_depths: Blocks of each recursive unit (section 4.1).
        recursion_depth: Recursion steps T.
        aggregation: "soft", "hard" or "last", see RecursiveUnit; without effect at T = 1.
        step_transform: Step transforms between the steps; without effect at T = 1.
        share_blocks: False gives each step blocks of its own; without effect at T = 1.
        mlp_ratio: MLP hidden channels / C.
        drop_path_rate: Stochastic depth of the last block, rising linearly from 0 over the unique
            blocks; a shared block has one rate for all its steps.
        drop_rate: Dropout before the classifier.
        distilled: Add DeiT's distillation token and head: a pair of logits in training, their mean
            in evaluation.
        global_pool: What the classifier reads: "token" (class token), "avg" (mean of patches), or
            "" for all tokens.
        init: "deit" or "fan_in", see INITS.
        window_size: Side in tokens of attention windows, for large images; 0, the paper's, for
            global attention everywhere. With windows, global are the end of each unit and the last
            block (T = 1: the last block of each of ``unit_depths``, and the last block). Needs no
            other weights.
        steps: Run only the first steps of every unit, at test time; None for all. See
            ``set_steps``.

    Raises:
        ValueError: An argument is outside its range.
    """

    def __init__(
        self,
        img_size: int | tuple[int, int] = 224,
        patch_size: int = 16,
        in_chans: int = 3,
        num_classes: int = 1000,
        embed_dim: int = 384,
        num_heads: int = 6,
        unit_depths: Sequence[int] = (4, 3, 2, 1),
        recursion_depth: int = 3,
        aggregation: str = "soft",
        step_transform: bool = True,
        share_blocks: bool = True,
        mlp_ratio: float = 4.0,
        drop_path_rate: float = 0.0,
        drop_rate: float = 0.0,
        distilled: bool = False,
        global_pool: str = "token",
        init: str = "deit",
        window_size: int = 0,
        steps: int | None = None,
    ) -> None:
        super().__init__()
        unit_depths = tuple(unit_depths)
        check_arguments(
            embed_dim, num_heads, unit_depths, recursion_depth, aggregation, init, window_size
        )
        check_pooling(global_pool, distilled)

        self.num_classes = num_classes
        self.embed_dim = self.num_features = self.head_hidden_size = embed_dim
        self.unit_depths = unit_depths
        self.recursion_depth = self.steps = recursion_depth
        self.global_pool = global_pool
        self.window_size = window_size
        self.num_prefix_tokens = 2 if distilled else 1
        self.distilled_training = distilled
        self.grad_checkpointing: bool | str = False

        self.patch_embed = PatchEmbed(
            img_size=img_size,
            patch_size=patch_size,
            in_chans=in_chans,
            embed_dim=embed_dim,
            output_fmt="NHWC",
            strict_img_size=False,
            dynamic_img_pad=True,
        )
        self.patch_size = patch_size
        self.grid_size = self._grid_of(to_2tuple(img_size))
        if self.grid_size[0] != self.grid_size[1]:
            # A count of positions does not tell the shape of a rectangular grid: keep it in the
            # checkpoint, so that loading at another size resamples rows and columns, not a list.
            self.register_buffer("pos_embed_grid", torch.tensor(self.grid_size))
        self.cls_token = nn.Parameter(torch.empty(1, 1, embed_dim))
        self.dist_token = nn.Parameter(torch.empty(1, 1, embed_dim)) if distilled else None
        num_positions = self.num_prefix_tokens + math.prod(self.grid_size)
        self.pos_embed = nn.Parameter(torch.empty(1, num_positions, embed_dim))

        last = num_layers(unit_depths) - 1
        rates = [drop_path_rate * index / last for index in range(last + 1)]

        def plain_blocks(first: int, depth: int) -> list[nn.Module]:
            return [
                Block(
                    embed_dim,
                    num_heads,
                    mlp_ratio,
                    qkv_bias=True,
                    drop_path=rate,
                    norm_layer=LayerNorm,
                )
                for rate in rates[first : first + depth]
            ]

        self.blocks = nn.ModuleList()
        first = 0
        for stage, depth in enumerate(stage_depths(unit_depths, recursion_depth)):
            if recursion_depth > 1 and 0 < stage <= len(unit_depths):
                copies = 1 if share_blocks else recursion_depth
                members = [block for _ in range(copies) for block in plain_blocks(first, depth)]
                self.blocks.append(
                    RecursiveUnit(
                        members,
                        embed_dim,
                        recursion_depth,
                        aggregation,
                        step_transform,
                        share_blocks,
                    )
                )
            else:
                self.blocks.extend(plain_blocks(first, depth))
            first += depth
        self._first_feature = 0 if recursion_depth == 1 else 1
        unit_ends = set(accumulate(unit_depths)) if recursion_depth == 1 else set()
        self._global_blocks = unit_ends | {len(self.blocks) - 1}
        self.feature_info = [
            {"num_chs": embed_dim, "reduction": patch_size, "module": f"blocks.{index}"}
            for index in range(self._first_feature, len(self.blocks))
        ]
        self.norm = LayerNorm(embed_dim)
        self.head_drop = nn.Dropout(drop_rate)
        self.head = self._make_head()
        self.head_dist = self._make_head() if distilled else None
        self._reset_parameters(init)
        if steps is not None:
            self.set_steps(steps)

    def _reset_parameters(self, init: str) -> None:
        embeddings = [self.cls_token, self.pos_embed]
        if self.dist_token is not None:
            embeddings.append(self.dist_token)
        for embedding in embeddings:
            nn.init.trunc_normal_(embedding, std=INITS[init])
        for module in self.modules():
            if init == "deit" and isinstance(module, nn.Linear):
                reset_linear(module)

    # --- forward ---------------------------------------------------------------------

    def forward(self, x: Tensor) -> Any:
        """Image (B, in_chans, H, W) -> logits (B, num_classes); in distilled training a pair."""
        return self.forward_head(self.forward_features(x))

    def forward_features(self, x: Tensor) -> Tensor:
        """Image (B, in_chans, H, W) -> tokens after the final norm (B, P + N, C)."""
        x, grid = self._embed(x)
        for index in range(len(self.blocks)):
            x = self._run(index, x, grid)
        return self.norm(x)

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """Tokens (B, P + N, C) -> logits; ``pre_logits`` gives what the classifier reads."""
        if self.head_dist is not None:
            pair = self.head_drop(x[:, 0]), self.head_drop(x[:, 1])
            if not pre_logits:
                pair = self.head(pair[0]), self.head_dist(pair[1])
                if self.training and self.distilled_training:
                    return pair
            return (pair[0] + pair[1]) / 2
        if self.global_pool == "token":
            x = x[:, 0]
        elif self.global_pool == "avg":
            x = x[:, self.num_prefix_tokens :].mean(dim=1)
        x = self.head_drop(x)
        return x if pre_logits else self.head(x)

    @torch.no_grad()
    def routing_weights(self, x: Tensor) -> list[Tensor]:
        """Mixture weights of every recursive unit for an image (Fig. 4), cls and dist tokens apart.

        Args:
            x: Image (B, in_chans, H, W).

        Returns:
            One (B, T, grid H, grid W) tensor a unit, summing to 1 over T (the steps that are run).

        Raises:
            ValueError: The model has no router (T = 1, or ``aggregation="last"``).
        """
        if not any(isinstance(block, RecursiveUnit) and block.router for block in self.blocks):
            raise ValueError(
                "routing_weights needs recursion_depth > 1 and 'soft' or 'hard' mixing"
            )
        x, grid = self._embed(x)
        weights = []
        for index, block in enumerate(self.blocks[:-1]):
            if isinstance(block, RecursiveUnit) and block.router is not None:
                weights.append(
                    to_spatial(block.router(x, block.steps)[:, self.num_prefix_tokens :], grid)
                )
            x = self._run(index, x, grid)
        return weights

    def _embed(self, x: Tensor) -> tuple[Tensor, tuple[int, int]]:
        x = self.patch_embed(x)  # (B, in_chans, H, W) -> (B, grid H, grid W, C)
        grid = (x.shape[1], x.shape[2])
        tokens: list[Tensor] = (
            [self.cls_token] if self.dist_token is None else [self.cls_token, self.dist_token]
        )
        prefix = torch.cat(tokens, dim=1).expand(x.shape[0], -1, -1)
        x = torch.cat([prefix, x.flatten(1, 2)], dim=1)
        # Without antialiasing, as DeiT, Detectron2 and MMSegmentation resample.
        pos_embed = resample_abs_pos_embed(
            self.pos_embed, grid, self.grid_size, self.num_prefix_tokens, antialias=False
        )
        return x + pos_embed, grid

    def _run(self, index: int, x: Tensor, grid: tuple[int, int]) -> Tensor:
        block = self.blocks[index]
        windows = None
        if self.window_size and index not in self._global_blocks:
            windows = Windows(self.window_size, grid, self.num_prefix_tokens)
        if isinstance(block, RecursiveUnit):
            # It recomputes block by block: recomputed as one it would hold all its steps at once.
            return block(x, windows)
        return run_block(block, x, self.grad_checkpointing, windows)

    def _grid_of(self, size: tuple[int, int]) -> tuple[int, int]:
        return self.patch_embed.dynamic_feat_size(size)

    def set_steps(self, steps: int) -> None:
        """Run only the first steps of every unit of a trained model, to trade accuracy for speed.

        The mixture weights of the steps that are left are renormalised. The paper does not do this.
        For inference: what belongs to the other steps gets no gradient.

        Args:
            steps: 1 to ``recursion_depth``, which is all of them.

        Raises:
            ValueError: Another number.
        """
        if not 1 <= steps <= self.recursion_depth:
            raise ValueError(f"steps={steps}: must be 1 to recursion_depth={self.recursion_depth}")
        self.steps = steps
        for block in self.blocks:
            if isinstance(block, RecursiveUnit):
                block.steps = steps

    # --- questions the model answers about itself ------------------------------------

    @property
    def effective_depth(self) -> int:
        """Sequential block applications, D_eff of Table 2; fewer with fewer steps."""
        return 2 + self.steps * sum(self.unit_depths)
