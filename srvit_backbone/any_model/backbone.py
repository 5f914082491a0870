"""The backbone of any model."""

from pathlib import Path

import timm

from srvit_backbone.any_model.open import build_detector, build_segmentor, is_segmentation
from srvit_backbone.checkpoint import load_checkpoint
from srvit_backbone.errors import InputError
from srvit_backbone.srvit import SRViT
from srvit_backbone.variants import VARIANTS


def open_backbone(name: str, weights: str = "") -> SRViT:
    """The SR-ViT of a variant, of a detector's or of a segmentor's config, in evaluation mode.

    Args:
        name: A variant or a config file.
        weights: Checkpoint of a classifier, a detector or a segmentor; "" leaves random weights.

    Raises:
        InputError: There is no such variant or file, or the checkpoint does not fit.
    """
    if name in VARIANTS:
        model = timm.create_model(name, num_classes=0)
    elif not Path(name).is_file():
        raise InputError(f"{name} is neither a config file nor one of {', '.join(VARIANTS)}")
    elif is_segmentation(name):
        model = build_segmentor(name).backbone
    else:
        model = build_detector(name).backbone.net
    if weights:
        load_checkpoint(model, weights)
    return model.eval()
