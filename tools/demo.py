"""Draw what a trained model finds on pictures.

    python tools/demo.py --config-file output/demo/config.yaml \\
        --weights output/demo/model_best.pth --input datasets/coins/coins.png \\
        --output output/pictures
"""

import argparse
import sys
from pathlib import Path

from PIL import Image

from srvit_backbone.adapters.d2_config import build_model, choose_device, load_config
from srvit_backbone.adapters.d2_engine import RunCheckpointer
from srvit_backbone.adapters.d2_predict import Predictor, class_names, draw
from srvit_backbone.errors import InputError, run_program
from srvit_backbone.pictures import read_image

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"}


def find_pictures(inputs: list[str]) -> list[Path]:
    """The files named, and the pictures in the folders named.

    Raises:
        InputError: There is none.
    """
    found: list[Path] = []
    for path in map(Path, inputs):
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
        elif path.is_file():
            found.append(path)
        else:
            raise InputError(f"no picture or folder {path}")
    if not found:
        raise InputError(f"no pictures ({', '.join(sorted(SUFFIXES))}) in {', '.join(inputs)}")
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config-file", required=True, help="a config, best the run's config.yaml")
    parser.add_argument("--weights", required=True, help="checkpoint of the whole detector")
    parser.add_argument("--input", nargs="+", required=True, help="pictures or folders of them")
    parser.add_argument(
        "--output", type=Path, required=True, help="folder, or a .png for one picture"
    )
    parser.add_argument("--threshold", type=float, default=0.5, help="lowest score shown")
    parser.add_argument("opts", nargs="*", help="config overrides, key=value")
    args = parser.parse_args()

    pictures = find_pictures(args.input)
    config = load_config(args.config_file, args.opts)
    choose_device(config)
    model = build_model(config)
    RunCheckpointer(model).load(args.weights)
    predictor, classes = Predictor(config, model), class_names(config)
    single = args.output.suffix == ".png" and len(pictures) == 1
    (args.output.parent if single else args.output).mkdir(parents=True, exist_ok=True)
    failed = 0
    for index, path in enumerate(pictures, 1):
        try:
            image = read_image(str(path))
        except InputError as error:
            failed += 1
            print(f"error: {error}", file=sys.stderr)
            continue
        found = predictor(image)
        count = int((found.scores >= args.threshold).sum())
        target = args.output if single else args.output / f"{path.stem}.png"
        Image.fromarray(draw(image, found, classes, args.threshold)).save(target)
        print(f"{index} of {len(pictures)}: {count} objects in {path}, drawn in {target}")
    if failed:
        raise InputError(f"{failed} of {len(pictures)} pictures could not be opened")


if __name__ == "__main__":
    run_program(main)
