"""SR-ViT (Soft Mixture-of-Recursions, arXiv 2607.00774) as a backbone.

Importing this registers the variants with timm and imports neither Detectron2 nor OpenMMLab: those
live in ``srvit_backbone.detectron2`` and ``srvit_backbone.openmmlab``.
"""

from srvit_backbone.checkpoint import CheckpointError, load_checkpoint
from srvit_backbone.hub import load_pretrained
from srvit_backbone.soft_mor import RecursiveUnit, SoftRouter, StepTransform
from srvit_backbone.srvit import SRViT
from srvit_backbone.variants import VARIANTS

__all__ = [
    "VARIANTS",
    "CheckpointError",
    "RecursiveUnit",
    "SRViT",
    "SoftRouter",
    "StepTransform",
    "load_checkpoint",
    "load_pretrained",
]
