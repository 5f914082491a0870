"""Convert a ViT or SR-ViT checkpoint to safetensors with this package's names.

    python tools/convert_checkpoint.py deit_small_patch16_224-cd65a155.pth \\
        pretrained/srvit_deit_s.safetensors --variant srvit_deit_s

Reads torch files and safetensors; finds the weights under the usual keys and prefixes. A plain ViT
(DeiT, MAE, DINOv2, timm) becomes a T = 1 model exactly, and with --warm-start a T > 1 model of as
many or fewer blocks, whose router, step transforms and mixture norms are newly initialised. Prints
what was done and the sha256.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("source", help="checkpoint to read")
    parser.add_argument("target", type=Path, help="safetensors file to write")
    parser.add_argument("--variant", required=True, help="e.g. srvit_s_t3")
    parser.add_argument(
        "--img-size", type=int, default=224, help="native size in pixels, default 224"
    )
    parser.add_argument(
        "--warm-start",
        nargs="?",
        const=True,
        default=False,
        metavar="HOW",
        help="plain ViT blocks into a T > 1 model: stepwise (default); average; "
        "stepwise, uniform; average, uniform",
    )
    parser.add_argument(
        "--raw", action="store_true", help="prefer the raw weights over averaged ones"
    )
    parser.add_argument("--seed", type=int, default=0, help="of what is newly initialised")
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Convert, and say what was done."""
    from srvit_backbone.checkpoint.file import convert_file
    from srvit_backbone.files import sha256

    print(convert_file(**vars(args)))
    print(f"{args.target} sha256 {sha256(args.target)}")


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
