"""Export a classifier, a backbone or a detector's backbone with its pyramid, and check the file.

    python tools/export.py srvit_s_t3 --weights pretrained/srvit_s_t3.safetensors --output m.onnx
    python tools/export.py srvit_s_t3 --part backbone --size 512 768 --dynamic --output m.onnx
    python tools/export.py detection/configs/mask_rcnn_srvit_s_t3.py --part pyramid \\
        --weights output/model_final.pth --size 1024 1024 --output pyramid.onnx
    python tools/export.py srvit_s_t3 --format torch --output m.pt2

What was exported is run again (ONNX Runtime, or torch.export's loader) and compared with the model
before the file appears under its name. Each shared weight is in the file once.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

MIB = 2**20


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
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
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Export, say how it compares."""
    from srvit_backbone.deployment.write import open_part, write_checked
    from srvit_backbone.errors import InputError

    if args.format == "torchscript":
        raise InputError(
            "TorchScript is not supported, torch has deprecated it: use --format onnx or torch"
        )
    model = open_part(args.model, args.part, args.weights, args.size, args.num_classes)
    shape = (args.batch, 3, *args.size)
    for checked, difference in write_checked(model, args.output, args.format, shape, args.dynamic):
        print(f"{checked}: largest difference from eager {difference:.1e}")
    stored = sum(tensor.numel() * tensor.element_size() for tensor in model.parameters())
    size = args.output.stat().st_size
    print(f"{args.output}: {size / MIB:.1f} MiB, {size / stored:.3f} of the parameters' bytes")


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
