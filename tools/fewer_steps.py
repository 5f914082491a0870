"""Accuracy against FLOPs of a trained classifier that runs only the first steps of its recursion.

    python tools/fewer_steps.py output/pretrain/srvit_nano_t3

The mixture weights of the steps that are left are renormalised. The paper does not claim that this
works: the table says what it gives for a run of tools/train_imagenet.py, on its validation images.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="output folder of a run")
    parser.add_argument("--data", default="", help="another place of its data")
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Print the table."""
    from srvit_backbone.pretrain.fewer_steps import accuracy_by_steps

    print("| steps | depth | GMACs | top-1, % | top-5, % |\n|---|---|---|---|---|")
    for row in accuracy_by_steps(args.run, args.data):
        print(
            f"| {row.steps} | {row.depth} | {row.gmacs:.3f} | {row.top1:.2f} | {row.top5:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
