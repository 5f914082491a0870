"""Say what a data set is taken for, and what training would trip over; exit status 1 if anything.

    python tools/check_dataset.py objects DATA              # COCO, YOLO, Pascal VOC, LabelMe
    python tools/check_dataset.py objects --train-json train.json --train-images images/train \\
        --val-json val.json --val-images images/val --sheet samples.png
    python tools/check_dataset.py masks DATA --classes road,car,person   # or classes.yaml
    python tools/check_dataset.py classes DATA              # folders of classes

It is the check that every training begins with. --sheet draws training samples with their labels as
the model will see them: resized, cropped and augmented by --config. --fix OUT writes the normalised
copy: ids, sizes and orientations put right, pictures 8-bit; the source is not touched.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATHS = ("train_json", "train_images", "val_json", "val_images")
# Kind of data set -> whose augmentations its samples are drawn with by default.
RECIPES = {
    "objects": str(ROOT / "detection/configs/mask_rcnn_srvit_s_t3.py"),
    "masks": str(ROOT / "segmentation/configs/upernet_own_data.py"),
    "classes": "srvit_s_t3",
}


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind, config in RECIPES.items():
        own = kinds.add_parser(kind)
        own.add_argument("data", nargs="?" if kind == "objects" else None, help="a folder")
        own.add_argument("--sheet", type=Path, help="picture of training samples to write, .png")
        own.add_argument("--config", default=config, help=f"recipe of --sheet, default {config}")
        own.add_argument("--fix", type=Path, metavar="OUT", help="write the normalised copy")
        own.add_argument("--exif", choices=("auto", "upright", "stored"), default="auto")
    for key in PATHS:
        kinds.choices["objects"].add_argument(f"--{key.replace('_', '-')}", default="")
    kinds.choices["masks"].add_argument(
        "--classes", required=True, help="names or number of the ids from 0 on, or a yaml file"
    )
    args = parser.parse_args(arguments)
    if args.kind == "objects" and not args.data and not args.train_json:
        parser.error("objects: name a folder, or the four paths")
    if args.kind == "masks" and args.classes.isdigit():
        args.classes = ",".join(f"class {i}" for i in range(int(args.classes)))
    return args


def main(args: Namespace) -> None:
    """Check, print what was found, draw, write."""
    from srvit_backbone.any_model.samples import CHECKS, SHEETS, WRITERS
    from srvit_backbone.errors import InputError
    from srvit_backbone.files import write_folder

    if args.sheet and args.sheet.suffix != ".png":
        raise InputError(f"--sheet {args.sheet}: must end in .png")
    data = CHECKS[args.kind](args)
    for line in (*data.said, *data.findings):
        print(line)
    problems = len(data.findings.problems)
    print(f"{problems} problems, {len(data.findings.notes)} notes")
    if args.fix:
        write_folder(args.fix, lambda folder: WRITERS[args.kind](data, folder))
        print(f"Normalised copy: {args.fix}")
    if args.sheet:
        picture = SHEETS[args.kind](args)
        args.sheet.parent.mkdir(parents=True, exist_ok=True)
        picture.save(args.sheet)
        print(f"Samples: {args.sheet}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
