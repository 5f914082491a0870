"""Turn a labelled folder into COCO's form: train.json with train/, val.json with val/.

    python tools/import_dataset.py my_yolo_export data/mine
    python tools/import_dataset.py VOC2012 data/voc --format voc

Reads COCO, YOLO (boxes and polygons), Pascal VOC and LabelMe; the format is recognised unless it is
named. Where there is no validation split a fifth is drawn. The source is not touched. Training does
not need this: own_data=FOLDER reads all of them where they are.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("source", help="a folder")
    parser.add_argument("target", type=Path, help="a folder that is not there yet")
    parser.add_argument(
        "--format", choices=("coco", "yolo", "voc", "labelme"), default="", help="do not guess"
    )
    parser.add_argument("--exif", choices=("auto", "upright", "stored"), default="auto")
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Read, say what was found, write."""
    from srvit_backbone.files import write_folder
    from srvit_backbone.own_data.detection import read_detection
    from srvit_backbone.own_data.write import write_detection

    data = read_detection({"folder": args.source, "format": args.format}, exif=args.exif)
    for line in (*data.said, *data.findings):
        print(line)
    data.findings.stop_on_problems()
    write_folder(args.target, lambda folder: write_detection(data, folder))
    print(f"{len(data.train.images)} + {len(data.val.images)} pictures written to {args.target}")


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
