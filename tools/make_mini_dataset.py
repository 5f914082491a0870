"""Make a small real data set, without a download, from pictures that ship inside Python packages.

    python tools/make_mini_dataset.py coins  datasets/coins
    python tools/make_mini_dataset.py digits datasets/digits

``coins``: the 24 real coins of scikit-image's photograph, cut out and composed into scenes in front
of other photographs and textures. Some coins appear in the validation scenes only. Two classes by
real size, a difference that the scenes exaggerate (SCALES). Written as COCO json (train.json,
val.json) and, the same scenes, as ADE20K folders (ade/). The untouched photograph is kept as
coins.png.

``digits``: scikit-learn's 1,797 handwritten digits as an ImageFolder (train/, val/).

The same seed gives the same files, byte for byte. The folder appears only when it is complete.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from functools import partial
from pathlib import Path


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=("coins", "digits"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train-scenes", type=int, default=300, help="coins only")
    parser.add_argument("--val-scenes", type=int, default=60, help="coins only")
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Write the data set."""
    from srvit_backbone.files import write_folder
    from srvit_backbone.mini_datasets import write_coins, write_digits

    scenes = {"train_scenes": args.train_scenes, "val_scenes": args.val_scenes}
    writers = {"coins": partial(write_coins, **scenes), "digits": write_digits}
    write_folder(args.folder, partial(writers[args.dataset], seed=args.seed))
    print(f"{args.dataset} written to {args.folder}")


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
