"""Convert a ViT or SR-ViT checkpoint to safetensors with this package's names.

    python tools/convert_checkpoint.py deit_small_patch16_224-cd65a155.pth \\
        pretrained/srvit_deit_s.safetensors --variant srvit_deit_s

Reads torch files and safetensors; finds the weights under the usual keys and prefixes. A plain ViT
(DeiT, MAE, DINOv2, timm) becomes a T = 1 model exactly, and with --warm-start a T > 1 model of as
many or fewer blocks, whose router, step transforms and mixture norms are newly initialised. Prints
what was done and the sha256.
"""

import argparse
import os
from pathlib import Path

import torch
from safetensors.torch import save_file

from srvit_backbone import SRViT
from srvit_backbone.checkpoint import convert, read, unwrap
from srvit_backbone.errors import InputError, run_program
from srvit_backbone.files import sha256
from srvit_backbone.plain_vit import WARM_STARTS
from srvit_backbone.variants import variant_settings


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", help="checkpoint to read")
    parser.add_argument("target", type=Path, help="safetensors file to write")
    parser.add_argument("--variant", required=True, help="e.g. srvit_s_t3")
    parser.add_argument(
        "--img-size", type=int, default=224, help="native size in pixels, default 224"
    )
    parser.add_argument(
        "--warm-start",
        nargs="?",
        const=WARM_STARTS[0],
        default=False,
        metavar="HOW",
        help="plain ViT blocks into a T > 1 model: " + "; ".join(WARM_STARTS),
    )
    parser.add_argument(
        "--raw", action="store_true", help="prefer the raw weights over averaged ones"
    )
    parser.add_argument("--seed", type=int, default=0, help="of what is newly initialised")
    args = parser.parse_args()
    if args.target.suffix != ".safetensors":
        raise InputError(f"{args.target} must end in .safetensors")

    content = read(args.source)
    state, key = unwrap(content, use_ema=not args.raw)
    torch.manual_seed(args.seed)
    settings = variant_settings(args.variant, img_size=args.img_size)
    head = next((value for name, value in state.items() if name.endswith("head.weight")), None)
    model = SRViT(
        **settings,
        num_classes=0 if head is None else head.shape[0],
        distilled=any(name.endswith("dist_token") for name in state),
    )
    converted = convert(state, model, warm_start=args.warm_start, source=args.source + key)

    args.target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = args.target.with_suffix(".unfinished")
    tensors = {name: value.contiguous() for name, value in converted.state.items()}
    save_file(
        tensors, unfinished, metadata={"variant": args.variant, "source": Path(args.source).name}
    )
    os.replace(unfinished, args.target)
    print(converted.report)
    print(f"{args.target} sha256 {sha256(args.target)}")


if __name__ == "__main__":
    run_program(main)
