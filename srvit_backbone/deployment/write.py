"""An exported file, written and compared with its model before it gets its name."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import timm
import torch
from torch import nn

from srvit_backbone.checkpoint import load_checkpoint
from srvit_backbone.deployment.export import INPUT, Features, export_onnx, export_program
from srvit_backbone.errors import InputError
from srvit_backbone.variants import VARIANTS

TOLERANCE = 1e-4


def open_part(
    name: str, part: str, weights: str | None, size: Sequence[int], num_classes: int | None
) -> nn.Module:
    """What is to be exported, in evaluation mode.

    Args:
        name: A variant, or a detector's config for the pyramid.
        part: "classifier", "backbone" or "pyramid".
        weights: Checkpoint; None leaves random weights.
        size: Native height and width in pixels.
        num_classes: Of the classifier; None for the variant's.

    Raises:
        InputError: There is no such variant or config, or the checkpoint does not fit.
    """
    if part == "pyramid":
        if name in VARIANTS:
            raise InputError("--part pyramid needs a detector's config instead of a variant")
        from srvit_backbone.any_model.open import build_detector
        from srvit_backbone.detectron2.checkpoints import RunCheckpointer

        detector = build_detector(name)
        if weights:
            RunCheckpointer(detector).load(weights)
        return Features(detector.backbone).eval()
    if name not in VARIANTS:
        raise InputError(f"unknown variant {name!r}: choose one of {', '.join(VARIANTS)}")
    classes = {} if num_classes is None else {"num_classes": num_classes}
    model = timm.create_model(name, img_size=tuple(size), **classes)
    if weights:
        load_checkpoint(model, weights)
    return (model if part == "classifier" else Features(model)).eval()


def write_checked(
    model: nn.Module, output: Path, kind: str, shape: tuple[int, ...], dynamic: bool
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Export, and compare the file with the model at one shape, at two if sizes are open.

    Args:
        model: From ``open_part``.
        output: The file, which is not there unless all agrees.
        kind: "onnx" or "torch".
        shape: (B, 3, H, W) in pixels.
        dynamic: Leave batch, height and width open.

    Yields:
        A shape, and the largest difference from eager there.

    Raises:
        InputError: The file differs from the model.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_name(f"unfinished.{output.name}")
    try:
        if kind == "onnx":
            export_onnx(model, unfinished, shape, dynamic)
        else:
            torch.export.save(export_program(model, shape, dynamic), unfinished)
        shapes = [shape]
        if dynamic:
            shapes.append((shape[0] + 1, 3, shape[2] + 24, shape[3] + 56))
        for checked in shapes:
            difference = largest_difference(model, unfinished, kind, checked)
            yield checked, difference
            if not difference < TOLERANCE:
                raise InputError(f"the exported model differs by more than {TOLERANCE}")
        unfinished.replace(output)
    finally:
        unfinished.unlink(missing_ok=True)


def run_file(path: Path, kind: str, image: torch.Tensor) -> list[torch.Tensor]:
    """The outputs of an exported file."""
    if kind == "torch":
        outputs = torch.export.load(path).module()(image)
        return list(outputs) if isinstance(outputs, tuple) else [outputs]
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return [torch.from_numpy(array) for array in session.run(None, {INPUT: image.numpy()})]


def largest_difference(model: nn.Module, path: Path, kind: str, shape: tuple[int, ...]) -> float:
    """Between the model and the file, on a random image."""
    image = torch.randn(shape)
    with torch.no_grad():
        expected = model(image)
        expected = list(expected) if isinstance(expected, tuple) else [expected]
        found = run_file(path, kind, image)
    return max((a - b).abs().max().item() for a, b in zip(expected, found, strict=True))
