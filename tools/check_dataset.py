"""Find what training would trip over in a data set; exit status 1 if there is anything.

    python tools/check_dataset.py coco --train-json train.json --train-images images/train \\
        --val-json val.json --val-images images/val
    python tools/check_dataset.py classes DATA              # train/ and val/, a folder a class
    python tools/check_dataset.py masks DATA --classes 3    # images/, masks/ as in mmseg's own data

Pictures that cannot be opened, boxes outside, empty or degenerate polygons, ids beyond the classes,
classes that differ, pictures in both splits, 16-bit pictures, EXIF rotation.
"""

import argparse
import sys
from pathlib import Path

from srvit_backbone.data_checks.coco import check_coco
from srvit_backbone.data_checks.findings import Finding
from srvit_backbone.data_checks.folders import check_classes, check_masks
from srvit_backbone.errors import run_program


def find(args: argparse.Namespace) -> list[Finding]:
    """The findings of the data set that the command line names."""
    if args.kind == "coco":
        return check_coco((args.train_json, args.train_images), (args.val_json, args.val_images))
    if args.kind == "classes":
        return check_classes(args.data / "train", args.data / "val")
    splits = [
        (args.data / "images" / split, args.data / args.masks / split)
        for split in (args.train, args.val)
    ]
    return check_masks(*splits, args.classes)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    coco = kinds.add_parser("coco")
    for name in ("--train-json", "--train-images", "--val-json", "--val-images"):
        coco.add_argument(name, type=Path, required=True)
    kinds.add_parser("classes").add_argument("data", type=Path)
    masks = kinds.add_parser("masks")
    masks.add_argument("data", type=Path)
    masks.add_argument("--classes", type=int, required=True, help="number of classes, ids from 0")
    masks.add_argument("--masks", default="annotations", help="folder of the masks")
    masks.add_argument("--train", default="training", help="name of the training split")
    masks.add_argument("--val", default="validation", help="name of the validation split")
    findings = find(parser.parse_args())
    for finding in findings:
        print(finding)
    problems = sum(not finding.harmless for finding in findings)
    print(f"{problems} problems, {len(findings) - problems} notes")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    run_program(main)
