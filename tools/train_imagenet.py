"""Pretrain, fine-tune or distil an SR-ViT classifier on timm's parts.

    python tools/train_imagenet.py srvit_s_t3 data=/data/imagenet
    torchrun --nproc-per-node 8 tools/train_imagenet.py srvit_s_t3 data=/data/imagenet
    torchrun ... tools/train_imagenet.py srvit_s_t3 finetune_384 \\
        init=output/pretrain/srvit_s_t3/best.pth
    torchrun ... tools/train_imagenet.py srvit_s_t3 distill data=/data/imagenet
    python tools/train_imagenet.py digits

On the hardware at hand: --batch 256 (images a step; the learning rate follows), --memory 12GB (of a
GPU: the batch is cut into parts, activations are recomputed if need be). What changes is printed.

Names are recipes of pretrained/recipes/ or yaml files, merged in order over DeiT's recipe;
key=value sets any key. --resume continues after the last finished epoch.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

RECIPES = Path(__file__).parents[1] / "pretrained" / "recipes"


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="+", help="recipes and key=value overrides")
    parser.add_argument("--resume", action="store_true", help="continue the run in output")
    parser.add_argument("--batch", type=int, help="images a step, instead of the recipe's")
    parser.add_argument("--memory", default="", help="of a process, e.g. 12GB")
    parser.add_argument("--eval-only", action="store_true", help="top-1 and top-5 of init=FILE")
    parser.set_defaults(recipes=RECIPES)
    return parser.parse_intermixed_args(arguments)


def main(args: Namespace) -> None:
    """One process of the run."""
    from srvit_backbone.pretrain.run import run

    run(args)


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
