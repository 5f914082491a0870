"""FLOPs of a segmentor: as the paper counted them, and what is really computed."""

from typing import Any

import torch

from srvit_backbone.analysis.flops import flop_counter, unfused_attention


def count_gflops(model: Any, height: int, width: int) -> tuple[float, float]:
    """Twice the multiply-accumulates of one image, attention included, in units of 1e9.

    Args:
        model: A segmentor with an SRViTBackbone; on the "meta" device nothing is computed.
        height: Image height in pixels.
        width: Image width in pixels.

    The soft mixture counts as T multiply-adds a token and channel.

    Returns:
        With the last block, as Table 4 has it though nothing uses its output, and without.
    """
    device = next(model.parameters()).device
    backbone = model.backbone
    behind = backbone.blocks[backbone.feature_blocks(backbone.out_indices)[-1] + 1 :]
    grid = backbone.patch_embed.dynamic_feat_size((height, width))
    tokens = torch.zeros(
        1, backbone.num_prefix_tokens + grid[0] * grid[1], backbone.embed_dim, device=device
    )
    image = torch.zeros(1, 3, height, width, device=device)
    model.eval()
    with torch.no_grad(), unfused_attention(model):
        with flop_counter() as used:
            model(image, mode="tensor")
        with flop_counter() as unused:
            for block in behind:
                block(tokens)
    computed = used.get_total_flops()
    return (computed + unused.get_total_flops()) / 1e9, computed / 1e9
