"""Run a trained segmentor on pictures, and draw what it finds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import init_default_scope
from mmseg.registry import MODELS
from PIL import Image, ImageDraw, ImageFont

from srvit_backbone.checkpoint import CheckpointError, read
from srvit_backbone.openmmlab.data import without_loading
from srvit_backbone.own_data.pictures import contact_sheet, read_image


def load_segmentor(config: Config, weights: str, device: str) -> Any:
    """The segmentor of a config with all its weights, in evaluation mode.

    Args:
        config: A config of this package, or as saved by a run.
        weights: Checkpoint of the whole segmentor, as a run writes it.
        device: "cpu", "cuda", ...

    Raises:
        CheckpointError: The file is missing or damaged, or does not fit.
    """
    init_default_scope(config.default_scope)
    content = read(weights)
    state = content.get("state_dict", content)
    settings = config.model.copy()
    settings.backbone = {**settings.backbone, "pretrained": None, "init_cfg": None}
    model = MODELS.build(settings)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{weights} does not fit the config's model: {reason}") from error
    meta = content.get("meta", {}).get("dataset_meta") or {}
    model.dataset_meta = {k: meta[k] for k in ("classes", "palette") if k in meta}
    model.cfg = config
    return model.to(device).eval()


def predict(model: Any, image: np.ndarray) -> np.ndarray:
    """Image (H, W, 3) in RGB, uint8 -> class ids (H, W), with the config's test-time resizing."""
    size = image.shape[:2]
    bgr = np.ascontiguousarray(image[:, :, ::-1])
    pipeline = Compose(without_loading(model.cfg.test_pipeline))
    data = pipeline({"img": bgr, "img_shape": size, "ori_shape": size, "img_path": ""})
    batch = {"inputs": [data["inputs"]], "data_samples": [data["data_samples"]]}
    with torch.no_grad():
        return model.test_step(batch)[0].pred_sem_seg.data[0].cpu().numpy()


def draw(
    image: np.ndarray,
    labels: np.ndarray,
    classes: Sequence[str],
    palette: Sequence[Sequence[int]],
    side: int = 1000,
) -> np.ndarray:
    """Classes in their colours over a picture, with a legend of those that occur below it.

    Args:
        image: (H, W, 3) in RGB, uint8.
        labels: Class ids (H, W).
        classes: Class names.
        palette: A colour for each class, RGB from 0 to 255.
        side: Small pictures are enlarged to about this many pixels, so that names stay legible.
    """
    scale = max(1.0, side / max(image.shape[:2]))
    size = round(image.shape[1] * scale), round(image.shape[0] * scale)
    picture = Image.fromarray(image).resize(size, Image.Resampling.LANCZOS)
    colours = Image.fromarray(np.asarray(palette, np.uint8)[labels]).resize(
        size, Image.Resampling.NEAREST
    )
    blended = Image.blend(picture, colours, 0.5)
    present = [(classes[i], tuple(palette[i])) for i in np.unique(labels)]
    return np.asarray(_with_legend(blended, present))


def _with_legend(picture: Image.Image, entries: Sequence[tuple[str, tuple]]) -> Image.Image:
    height = max(14, picture.height // 28)
    font = ImageFont.load_default(height)
    places, x, y = [], height // 2, height // 2
    for name, _ in entries:
        width = round(font.getlength(name)) + 3 * height
        if x + width > picture.width and x > height:
            x, y = height // 2, y + 2 * height
        places.append((x, y))
        x += width
    canvas = Image.new("RGB", (picture.width, picture.height + y + 2 * height), "white")
    canvas.paste(picture)
    pen = ImageDraw.Draw(canvas)
    for (name, colour), (x, y) in zip(entries, places, strict=True):
        top = picture.height + y
        pen.rectangle((x, top, x + height, top + height), fill=colour, outline="black")
        pen.text((x + 1.5 * height, top - height / 6), name, fill="black", font=font)
    return canvas


def prediction_sheet(
    model: Any, config: Config, dataset: Any, count: int, side: int = 480
) -> Image.Image:
    """Predictions on images spread over a data set, as one picture, four in a row."""
    model.cfg = config
    training = model.training
    model.eval()
    step = max(1, len(dataset) // count)
    paths = [dataset.get_data_info(i)["img_path"] for i in range(0, len(dataset), step)][:count]
    meta, drawn = dataset.metainfo, []
    for path in paths:
        image = read_image(path)
        labels = predict(model, image)
        drawn.append(draw(image, labels, meta["classes"], meta["palette"], side))
    model.train(training)
    return contact_sheet(drawn, side)
