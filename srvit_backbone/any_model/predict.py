"""A trained detector or segmentor on pictures, drawn."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from srvit_backbone.any_model.open import is_segmentation
from srvit_backbone.errors import InputError
from srvit_backbone.own_data.pictures import read_image

# Picture (H, W, 3) -> the same with drawings, and what there is to say about it.
Draw = Callable[[np.ndarray], tuple[np.ndarray, str]]


def open_drawing(
    config: str,
    weights: str,
    overrides: Sequence[str] = (),
    threshold: float = 0.5,
    overlap: float = 1.0,
) -> Draw:
    """What draws a model's findings on a picture.

    Args:
        config: A config of either framework, best as a run has saved it.
        weights: Checkpoint of the whole model.
        overrides: Of the config, key=value.
        threshold: Lowest score of a detector's object that is shown.
        overlap: See ``detectron2.predict.Predictor``.

    Raises:
        InputError: Config or weights cannot be used.
    """
    if is_segmentation(config):
        return _segmentor(config, weights, overrides)
    return _detector(config, weights, overrides, threshold, overlap)


def draw_pictures(pictures: Sequence[Path], draw: Draw, output: Path) -> None:
    """Draw on every picture, saying so.

    Args:
        pictures: Files.
        draw: From ``open_drawing``.
        output: A folder, or a .png for one picture.

    Raises:
        InputError: Pictures could not be opened; the others are drawn.
    """
    single = output.suffix == ".png" and len(pictures) == 1
    (output.parent if single else output).mkdir(parents=True, exist_ok=True)
    failed = 0
    for index, path in enumerate(pictures, 1):
        try:
            image = read_image(str(path))
        except InputError as error:
            failed += 1
            print(f"error: {error}", file=sys.stderr)
            continue
        drawn, summary = draw(image)
        target = output if single else output / f"{path.stem}.png"
        Image.fromarray(drawn).save(target)
        print(f"{index} of {len(pictures)}: {summary} in {path}, drawn in {target}")
    if failed:
        raise InputError(f"{failed} of {len(pictures)} pictures could not be opened")


def _detector(
    config_file: str, weights: str, overrides: Sequence[str], threshold: float, overlap: float
) -> Draw:
    from srvit_backbone.detectron2.checkpoints import RunCheckpointer
    from srvit_backbone.detectron2.config import build_model, choose_device, load_config
    from srvit_backbone.detectron2.predict import Predictor, class_names, draw

    config = load_config(config_file, list(overrides))
    choose_device(config)
    model = build_model(config)
    RunCheckpointer(model, class_names=config.class_names).load(weights)
    predictor, classes = Predictor(config, model, overlap), class_names(config)

    def run(image: np.ndarray) -> tuple[np.ndarray, str]:
        found = predictor(image)
        count = int((found.scores >= threshold).sum())
        return draw(image, found, classes, threshold), f"{count} objects"

    return run


def _segmentor(config_file: str, weights: str, overrides: Sequence[str]) -> Draw:
    from mmengine.config import Config, DictAction

    config = Config.fromfile(config_file)
    from srvit_backbone.openmmlab.predict import draw, load_segmentor, predict

    for key, _, value in (option.partition("=") for option in overrides):
        config.merge_from_dict({key: DictAction._parse_iterable(value)})
    model = load_segmentor(config, weights, "cuda" if torch.cuda.is_available() else "cpu")
    classes, palette = model.dataset_meta["classes"], model.dataset_meta["palette"]

    def run(image: np.ndarray) -> tuple[np.ndarray, str]:
        labels = predict(model, image)
        shares = np.bincount(labels.ravel(), minlength=len(classes)) / labels.size
        largest = sorted(range(len(classes)), key=lambda i: -shares[i])[:5]
        text = ", ".join(f"{shares[i]:.0%} {classes[i]}" for i in largest if shares[i] > 0)
        return draw(image, labels, classes, palette), text

    return run
