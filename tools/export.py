"""Export a classifier, a backbone or a detector's backbone with its pyramid, and check the file.

    python tools/export.py srvit_s_t3 --weights pretrained/srvit_s_t3.safetensors --output m.onnx
    python tools/export.py srvit_s_t3 --part backbone --size 512 768 --dynamic --output m.onnx
    python tools/export.py detection/configs/mask_rcnn_srvit_s_t3.py --part pyramid \\
        --weights output/model_final.pth --size 1024 1024 --output pyramid.onnx
    python tools/export.py srvit_s_t3 --format torch --output m.pt2

What was exported is run again (ONNX Runtime, or torch.export's loader) and compared with the model
before the file appears under its name. Each shared weight is in the file once.
"""

import argparse
from pathlib import Path

import timm
import torch
from torch import nn

from srvit_backbone import load_checkpoint
from srvit_backbone.adapters.any_config import build_detector
from srvit_backbone.errors import InputError, run_program
from srvit_backbone.export import INPUT, Features, export_onnx, export_program
from srvit_backbone.variants import VARIANTS

TOLERANCE = 1e-4
MIB = 2**20


def build(args: argparse.Namespace) -> nn.Module:
    """The part to export, with its weights."""
    if args.part == "pyramid":
        if args.model in VARIANTS:
            raise InputError("--part pyramid needs a detector's config instead of a variant")
        from srvit_backbone.adapters.d2_engine import RunCheckpointer

        detector = build_detector(args.model)
        if args.weights:
            RunCheckpointer(detector).load(args.weights)
        return Features(detector.backbone).eval()
    if args.model not in VARIANTS:
        raise InputError(f"unknown variant {args.model!r}: choose one of {', '.join(VARIANTS)}")
    classes = {} if args.num_classes is None else {"num_classes": args.num_classes}
    model = timm.create_model(args.model, img_size=tuple(args.size), **classes)
    if args.weights:
        load_checkpoint(model, args.weights)
    return (model if args.part == "classifier" else Features(model)).eval()


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


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a variant's name; for the pyramid a detector's config")
    parser.add_argument(
        "--part", choices=("classifier", "backbone", "pyramid"), default="classifier"
    )
    parser.add_argument("--format", choices=("onnx", "torch", "torchscript"), default="onnx")
    parser.add_argument("--weights", help="checkpoint; without one the weights are random")
    parser.add_argument("--num-classes", type=int, help="of the classifier")
    parser.add_argument("--size", type=int, nargs=2, default=(224, 224), metavar=("H", "W"))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--dynamic", action="store_true", help="any batch, height and width")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    if args.format == "torchscript":
        raise InputError(
            "TorchScript is not supported, torch has deprecated it: use --format onnx or torch"
        )
    model = build(args)
    shape = (args.batch, 3, *args.size)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = args.output.with_name(f"unfinished.{args.output.name}")
    try:
        if args.format == "onnx":
            export_onnx(model, unfinished, shape, args.dynamic)
        else:
            torch.export.save(export_program(model, shape, args.dynamic), unfinished)
        shapes = [shape]
        if args.dynamic:
            shapes.append((args.batch + 1, 3, args.size[0] + 24, args.size[1] + 56))
        for checked in shapes:
            difference = largest_difference(model, unfinished, args.format, checked)
            print(f"{checked}: largest difference from eager {difference:.1e}")
            if not difference < TOLERANCE:
                raise InputError(f"the exported model differs by more than {TOLERANCE}")
        unfinished.replace(args.output)
    finally:
        unfinished.unlink(missing_ok=True)
    stored = sum(tensor.numel() * tensor.element_size() for tensor in model.parameters())
    size = args.output.stat().st_size
    print(f"{args.output}: {size / MIB:.1f} MiB, {size / stored:.3f} of the parameters' bytes")


if __name__ == "__main__":
    run_program(main)
