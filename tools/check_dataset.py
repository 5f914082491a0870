"""Find what training would trip over in a data set; exit status 1 if there is anything.

    python tools/check_dataset.py coco --train-json train.json --train-images images/train \\
        --val-json val.json --val-images images/val --sheet samples.png
    python tools/check_dataset.py classes DATA              # train/ and val/, a folder a class
    python tools/check_dataset.py masks DATA --classes road,car,person  # as in upernet_own_data.py

Pictures that cannot be opened, boxes outside, empty or degenerate polygons, ids beyond the classes,
classes that differ, pictures in both splits, 16-bit pictures, EXIF rotation. --sheet draws training
samples with their labels as the model will see them: resized, cropped and augmented by --config.
"""

import argparse
import os
import sys
from pathlib import Path

import torch.distributed as dist
from PIL import Image

from srvit_backbone.data_checks.coco import check_coco
from srvit_backbone.data_checks.findings import Finding
from srvit_backbone.data_checks.folders import check_classes, check_masks
from srvit_backbone.errors import InputError, run_program
from srvit_backbone.pictures import find_pictures

ROOT = Path(__file__).parents[1]
SAMPLES = 12


def check(args: argparse.Namespace) -> list[Finding]:
    """The findings of the data set that the command line names."""
    if args.kind == "coco":
        return check_coco((args.train_json, args.train_images), (args.val_json, args.val_images))
    if args.kind == "classes":
        return check_classes(args.data / "train", args.data / "val")
    splits = [
        (args.data / "images" / split, args.data / args.masks / split)
        for split in (args.train, args.val)
    ]
    return check_masks(*splits, len(mask_classes(args)))


def mask_classes(args: argparse.Namespace) -> list[str]:
    """Names of the masks' classes, "class 0" and so on where only their number is given."""
    if args.classes.isdigit():
        return [f"class {i}" for i in range(int(args.classes))]
    return args.classes.split(",")


def coco_sheet(args: argparse.Namespace) -> Image.Image:
    """Samples with their boxes, masks and classes."""
    from srvit_backbone.adapters.d2_config import load_config, prepare_data
    from srvit_backbone.adapters.d2_samples import sample_sheet

    config = load_config(args.config, [])
    for key in config.own_data:
        config.own_data[key] = str(getattr(args, key))
    prepare_data(config)
    return sample_sheet(config, SAMPLES)


def masks_sheet(args: argparse.Namespace) -> Image.Image:
    """Samples with their masks over them."""
    from mmengine.config import Config

    from srvit_backbone.adapters.mm_samples import sample_sheet

    os.environ.setdefault("SEG_CLASSES", ",".join(mask_classes(args)))
    dataset = (config := Config.fromfile(args.config)).train_dataloader.dataset
    images, masks = f"images/{args.train}", f"{args.masks}/{args.train}"
    dataset.update(
        data_root=str(args.data), data_prefix={"img_path": images, "seg_map_path": masks}
    )
    suffixes = [path.suffix for path in find_pictures([str(args.data / images)])]
    dataset.img_suffix = suffixes[0]
    return sample_sheet(config, SAMPLES)


def classes_sheet(args: argparse.Namespace) -> Image.Image:
    """Samples over the names of their classes."""
    from srvit_backbone.pretrain.processes import start_process_group
    from srvit_backbone.pretrain.recipe import load_recipe
    from srvit_backbone.pretrain.samples import sample_sheet

    recipe = load_recipe(ROOT / "pretrained/recipes", [args.config], [f"data={args.data}"])
    start_process_group()
    try:
        return sample_sheet(recipe, SAMPLES)
    finally:
        dist.destroy_process_group()


# Kind of data set -> how its samples are drawn, and whose augmentations by default.
SHEETS = {
    "coco": (coco_sheet, str(ROOT / "detection/configs/mask_rcnn_srvit_s_t3.py")),
    "classes": (classes_sheet, "srvit_s_t3"),
    "masks": (masks_sheet, str(ROOT / "segmentation/configs/upernet_own_data.py")),
}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    coco, classes, masks = (kinds.add_parser(kind) for kind in SHEETS)
    for name in ("--train-json", "--train-images", "--val-json", "--val-images"):
        coco.add_argument(name, type=Path, required=True)
    classes.add_argument("data", type=Path)
    masks.add_argument("data", type=Path)
    masks.add_argument("--classes", required=True, help="names or number of the ids from 0 on")
    masks.add_argument("--masks", default="annotations", help="folder of the masks")
    masks.add_argument("--train", default="training", help="name of the training split")
    masks.add_argument("--val", default="validation", help="name of the validation split")
    for kind, (_, config) in SHEETS.items():
        own = kinds.choices[kind]
        own.add_argument("--sheet", type=Path, help="picture of training samples to write, .png")
        own.add_argument("--config", default=config, help=f"recipe of --sheet, default {config}")
    args = parser.parse_args()
    if args.sheet and args.sheet.suffix != ".png":
        raise InputError(f"--sheet {args.sheet}: must end in .png")
    return args


def main() -> None:
    """Check, print what was found, draw."""
    args = parse()
    findings = check(args)
    for finding in findings:
        print(finding)
    problems = sum(not finding.harmless for finding in findings)
    print(f"{problems} problems, {len(findings) - problems} notes")
    if args.sheet:
        picture = SHEETS[args.kind][0](args)
        args.sheet.parent.mkdir(parents=True, exist_ok=True)
        picture.save(args.sheet)
        print(f"Samples: {args.sheet}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    run_program(main)
