"""A checkpoint of any form as a safetensors file of this package."""

import os
from pathlib import Path

import torch
from safetensors.torch import save_file

from srvit_backbone.checkpoint.convert import convert
from srvit_backbone.checkpoint.read import StateDict, read, unwrap
from srvit_backbone.checkpoint.report import LoadReport
from srvit_backbone.errors import InputError


def save_whole(state: StateDict, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write weights as safetensors, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    tensors = {name: value.contiguous() for name, value in state.items()}
    save_file(tensors, unfinished, metadata=metadata)
    os.replace(unfinished, path)


def convert_file(
    source: str,
    target: Path,
    variant: str,
    *,
    img_size: int = 224,
    warm_start: bool | str = False,
    raw: bool = False,
    seed: int = 0,
) -> LoadReport:
    """Fit a file to a variant and write it as safetensors; classes and tokens are the file's.

    Args:
        source: A file of any form that ``read`` takes.
        target: The safetensors file to write.
        variant: A name of VARIANTS.
        img_size: Native size in pixels.
        warm_start: See ``load_checkpoint``.
        raw: Prefer the raw weights over averaged ones.
        seed: Of what is newly initialised.

    Raises:
        InputError: The target is of another suffix.
        CheckpointError: The source cannot be read or does not fit.
    """
    from srvit_backbone.srvit import SRViT
    from srvit_backbone.variants import variant_settings

    if target.suffix != ".safetensors":
        raise InputError(f"{target} must end in .safetensors")
    state, key = unwrap(read(source), use_ema=not raw)
    torch.manual_seed(seed)
    head = next((value for name, value in state.items() if name.endswith("head.weight")), None)
    model = SRViT(
        **variant_settings(variant, img_size=img_size),
        num_classes=0 if head is None else head.shape[0],
        distilled=any(name.endswith("dist_token") for name in state),
    )
    converted = convert(state, model, warm_start=warm_start, source=source + key)
    save_whole(converted.state, target, {"variant": variant, "source": Path(source).name})
    return converted.report
