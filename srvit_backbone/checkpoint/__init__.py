"""Weights in: read a file safely, unwrap it, fit it to a model, load it and report what happened.

Accepted: torch files and safetensors; the bare state dict or one under a usual key; any prefix in
front of the backbone; this package's names, or the plain ViT names of timm and facebookresearch's
DeiT. Nothing is skipped silently.
"""

from srvit_backbone.checkpoint.convert import Converted, convert, load_checkpoint
from srvit_backbone.checkpoint.plain_vit import WARM_STARTS
from srvit_backbone.checkpoint.pos_embed import resize_pos_embed
from srvit_backbone.checkpoint.read import CheckpointError, read, unwrap
from srvit_backbone.checkpoint.report import LoadReport

__all__ = [
    "WARM_STARTS",
    "CheckpointError",
    "Converted",
    "LoadReport",
    "convert",
    "load_checkpoint",
    "read",
    "resize_pos_embed",
    "unwrap",
]
