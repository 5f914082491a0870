"""The ranges of SRViT's arguments."""

from srvit_backbone.soft_mor import AGGREGATIONS

POOLINGS = ("token", "avg", "")
# Standard deviation of the embeddings by initialisation. "deit" is DeiT's rule, for widths of 384
# and up. At nano widths it is far too small: there "fan_in", torch's own rule for Linear layers.
INITS = {"deit": 0.02, "fan_in": 0.2}


def check_arguments(
    embed_dim: int,
    num_heads: int,
    unit_depths: tuple[int, ...],
    recursion_depth: int,
    aggregation: str,
    init: str,
    window_size: int,
) -> None:
    """Raise ValueError if an argument of SRViT is outside its range."""
    if num_heads < 1 or embed_dim % num_heads:
        raise ValueError(f"embed_dim={embed_dim} must be a multiple of num_heads={num_heads}")
    if not unit_depths or any(depth < 1 for depth in unit_depths):
        raise ValueError(
            f"unit_depths={unit_depths}: needs at least one unit, each of 1 block or more"
        )
    if recursion_depth < 1:
        raise ValueError(f"recursion_depth={recursion_depth}: must be 1 (no recursion) or more")
    if aggregation not in AGGREGATIONS:
        raise ValueError(f"aggregation={aggregation!r}: must be one of {AGGREGATIONS}")
    if window_size < 0:
        raise ValueError(f"window_size={window_size}: must be 0 (global attention) or more")
    if init not in INITS:
        raise ValueError(f"init={init!r}: must be one of {tuple(INITS)}")


def check_pooling(global_pool: str, distilled: bool) -> None:
    """Raise ValueError if the classifier cannot read what is asked for."""
    if global_pool not in POOLINGS:
        raise ValueError(f"global_pool={global_pool!r}: must be one of {POOLINGS}")
    if distilled and global_pool != "token":
        raise ValueError("distilled=True reads its two tokens: global_pool must be 'token'")
