"""Find what training would trip over in a data set; exit status 1 if there is anything.

    python tools/check_dataset.py coco --train-json train.json --train-images images/train \\
        --val-json val.json --val-images images/val --sheet samples.png
    python tools/check_dataset.py classes DATA              # train/ and val/, a folder a class
    python tools/check_dataset.py masks DATA --classes road,car,person  # as in upernet_own_data.py

Pictures that cannot be opened, boxes outside, empty or degenerate polygons, ids beyond the classes,
classes that differ, pictures in both splits, 16-bit pictures, EXIF rotation. --sheet draws training
samples with their labels as the model will see them: resized, cropped and augmented by --config.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

    from srvit_backbone.own_data.findings import Finding

ROOT = Path(__file__).parents[1]
# Kind of data set -> whose augmentations its samples are drawn with by default.
RECIPES = {
    "coco": str(ROOT / "detection/configs/mask_rcnn_srvit_s_t3.py"),
    "classes": "srvit_s_t3",
    "masks": str(ROOT / "segmentation/configs/upernet_own_data.py"),
}


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    coco, classes, masks = (kinds.add_parser(kind) for kind in RECIPES)
    for name in ("--train-json", "--train-images", "--val-json", "--val-images"):
        coco.add_argument(name, type=Path, required=True)
    classes.add_argument("data", type=Path)
    masks.add_argument("data", type=Path)
    masks.add_argument("--classes", required=True, help="names or number of the ids from 0 on")
    masks.add_argument("--masks", default="annotations", help="folder of the masks")
    masks.add_argument("--train", default="training", help="name of the training split")
    masks.add_argument("--val", default="validation", help="name of the validation split")
    for kind, config in RECIPES.items():
        own = kinds.choices[kind]
        own.add_argument("--sheet", type=Path, help="picture of training samples to write, .png")
        own.add_argument("--config", default=config, help=f"recipe of --sheet, default {config}")
    args = parser.parse_args(arguments)
    if args.kind == "masks" and args.classes.isdigit():
        args.classes = ",".join(f"class {i}" for i in range(int(args.classes)))
    return args


def check(args: Namespace) -> "list[Finding]":
    """The findings of the data set that the command line names."""
    from srvit_backbone.own_data.coco import check_coco
    from srvit_backbone.own_data.folders import check_classes, check_masks

    if args.kind == "coco":
        return check_coco((args.train_json, args.train_images), (args.val_json, args.val_images))
    if args.kind == "classes":
        return check_classes(args.data / "train", args.data / "val")
    splits = [
        (args.data / "images" / split, args.data / args.masks / split)
        for split in (args.train, args.val)
    ]
    return check_masks(*splits, len(args.classes.split(",")))


def sheet(args: Namespace) -> "Image.Image":
    """Training samples, drawn."""
    from srvit_backbone.any_model.samples import classes_sheet, coco_sheet, masks_sheet

    if args.kind == "coco":
        keys = ("train_json", "train_images", "val_json", "val_images")
        return coco_sheet(args.config, {key: str(getattr(args, key)) for key in keys})
    if args.kind == "classes":
        return classes_sheet(args.config, ROOT / "pretrained/recipes", args.data)
    folders = f"images/{args.train}", f"{args.masks}/{args.train}"
    return masks_sheet(args.config, args.data, *folders, args.classes.split(","))


def main(args: Namespace) -> None:
    """Check, print what was found, draw."""
    from srvit_backbone.errors import InputError

    if args.sheet and args.sheet.suffix != ".png":
        raise InputError(f"--sheet {args.sheet}: must end in .png")
    findings = check(args)
    for finding in findings:
        print(finding)
    problems = sum(not finding.harmless for finding in findings)
    print(f"{problems} problems, {len(findings) - problems} notes")
    if args.sheet:
        picture = sheet(args)
        args.sheet.parent.mkdir(parents=True, exist_ok=True)
        picture.save(args.sheet)
        print(f"Samples: {args.sheet}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
