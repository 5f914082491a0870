"""A model with its weights in one call."""

import os
from typing import Any

import timm
from torch import nn

from srvit_backbone.checkpoint import load_checkpoint, read, unwrap
from srvit_backbone.variants import variant_settings


def load_pretrained(
    variant: str, path: str | os.PathLike[str], *, warm_start: bool | str = False, **overrides: Any
) -> nn.Module:
    """A variant with the weights of a file, in evaluation mode.

    Classes and distillation token are the file's, unless ``overrides`` say otherwise.

    Args:
        variant: A name of VARIANTS.
        path: A file of any form that ``load_checkpoint`` reads.
        warm_start: Accept a plain ViT's blocks in a recursive model; True or one of
            ``plain_vit.WARM_STARTS``.
        **overrides: Arguments of SRViT that win over the variant's, e.g. ``img_size``.

    Raises:
        ValueError: There is no such variant.
        CheckpointError: The file is missing or damaged, or does not fit.
    """
    variant_settings(variant)
    content = read(path)
    state, _ = unwrap(content)
    heads = [value.shape[0] for name, value in state.items() if name.endswith("head.weight")]
    from_file = {
        "num_classes": heads[0] if heads else 0,
        "distilled": any(name.endswith("dist_token") for name in state),
    }
    model = timm.create_model(variant, **{**from_file, **overrides})
    load_checkpoint(model, content, warm_start=warm_start, name=os.fspath(path))
    return model.eval()
