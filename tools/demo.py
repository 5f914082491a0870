"""Draw what a trained model finds on pictures: objects of a detector, classes of a segmentor.

    python tools/demo.py --config-file output/demo/config.yaml \\
        --weights output/demo/model_best.pth --input datasets/coins/coins.png \\
        --output output/pictures
    python tools/demo.py --config-file output/demo_seg/upernet_srvit_demo.py \\
        --weights output/demo_seg/iter_1000.pth --input my_pictures/ --output output/pictures

Takes configs of detection/ and segmentation/, best as a run has saved them.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from srvit_backbone.adapters.any_config import is_segmentation
from srvit_backbone.errors import InputError, run_program
from srvit_backbone.pictures import find_pictures, read_image

# Picture (H, W, 3) -> the same with drawings, and what there is to say about it.
Draw = Callable[[np.ndarray], tuple[np.ndarray, str]]


def detector(args: argparse.Namespace) -> Draw:
    """A detector of a LazyConfig."""
    from srvit_backbone.adapters.d2_config import build_model, choose_device, load_config
    from srvit_backbone.adapters.d2_engine import RunCheckpointer
    from srvit_backbone.adapters.d2_predict import Predictor, class_names, draw

    config = load_config(args.config_file, args.opts)
    choose_device(config)
    model = build_model(config)
    RunCheckpointer(model, class_names=config.class_names).load(args.weights)
    predictor, classes = Predictor(config, model), class_names(config)

    def run(image: np.ndarray) -> tuple[np.ndarray, str]:
        found = predictor(image)
        count = int((found.scores >= args.threshold).sum())
        return draw(image, found, classes, args.threshold), f"{count} objects"

    return run


def segmentor(args: argparse.Namespace) -> Draw:
    """A segmentor of an MMEngine config."""
    from mmengine.config import Config, DictAction

    from srvit_backbone.adapters.mm_predict import draw, load_segmentor, predict

    config = Config.fromfile(args.config_file)
    for key, _, value in (option.partition("=") for option in args.opts):
        config.merge_from_dict({key: DictAction._parse_iterable(value)})
    model = load_segmentor(config, args.weights, "cuda" if torch.cuda.is_available() else "cpu")
    classes, palette = model.dataset_meta["classes"], model.dataset_meta["palette"]

    def run(image: np.ndarray) -> tuple[np.ndarray, str]:
        labels = predict(model, image)
        shares = np.bincount(labels.ravel(), minlength=len(classes)) / labels.size
        largest = sorted(range(len(classes)), key=lambda i: -shares[i])[:5]
        text = ", ".join(f"{shares[i]:.0%} {classes[i]}" for i in largest if shares[i] > 0)
        return draw(image, labels, classes, palette), text

    return run


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config-file", required=True, help="a config, best the run's own")
    parser.add_argument("--weights", required=True, help="checkpoint of the whole model")
    parser.add_argument("--input", nargs="+", required=True, help="pictures or folders of them")
    parser.add_argument(
        "--output", type=Path, required=True, help="folder, or a .png for one picture"
    )
    parser.add_argument("--threshold", type=float, default=0.5, help="lowest score shown")
    parser.add_argument("opts", nargs="*", help="config overrides, key=value")
    args = parser.parse_args()

    pictures = find_pictures(args.input)
    run = segmentor(args) if is_segmentation(args.config_file) else detector(args)
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
        drawn, summary = run(image)
        target = args.output if single else args.output / f"{path.stem}.png"
        Image.fromarray(drawn).save(target)
        print(f"{index} of {len(pictures)}: {summary} in {path}, drawn in {target}")
    if failed:
        raise InputError(f"{failed} of {len(pictures)} pictures could not be opened")


if __name__ == "__main__":
    run_program(main)
