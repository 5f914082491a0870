"""Run a trained detector on pictures, and draw what it finds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from detectron2.config import instantiate
from detectron2.data import DatasetCatalog, MetadataCatalog
from detectron2.data import transforms as T
from detectron2.structures import Instances
from detectron2.utils.visualizer import ColorMode, Visualizer
from omegaconf import DictConfig
from PIL import Image
from torch import nn
from torchvision.ops import nms

from srvit_backbone.own_data.pictures import contact_sheet, read_image


class Predictor:
    """A detector of a LazyConfig, with the config's own test-time resizing.

    Args:
        config: Its config.
        model: The detector, with its weights; put in evaluation mode.
        overlap: Of boxes that share more than this (IoU), of whatever class, only the best is
            kept: a detector suppresses within a class, so that one thing may be found as two.
            1 keeps all, which is what the evaluation counts.
    """

    def __init__(self, config: DictConfig, model: nn.Module, overlap: float = 1.0) -> None:
        self.overlap = overlap
        mapper = config.dataloader.test.mapper
        self.model = model.eval()
        self.augmentations = T.AugmentationList([instantiate(a) for a in mapper.augmentations])
        self.image_format = mapper.image_format

    @torch.no_grad()
    def __call__(self, image: np.ndarray) -> Instances:
        """Image (H, W, 3) in RGB, uint8 -> instances in its own pixels, on the CPU."""
        ordered = image if self.image_format == "RGB" else image[:, :, ::-1]
        entry = T.AugInput(ordered)
        self.augmentations(entry)
        tensor = torch.as_tensor(np.ascontiguousarray(entry.image.transpose(2, 0, 1)))
        height, width = image.shape[:2]
        inputs = {"image": tensor, "height": height, "width": width}
        found = self.model([inputs])[0]["instances"].to("cpu")
        if self.overlap >= 1:
            return found
        return found[nms(found.pred_boxes.tensor, found.scores, self.overlap)]


def draw(
    image: np.ndarray,
    instances: Instances,
    classes: Sequence[str],
    threshold: float | None,
    side: int = 1000,
) -> np.ndarray:
    """Boxes, masks, classes and scores over a picture.

    Args:
        image: (H, W, 3) in RGB, uint8.
        instances: What the detector found, or labels in the same form.
        classes: Class names.
        threshold: Lowest score to show; None for all, which then need no scores.
        side: Small pictures are enlarged to about this many pixels, so that lines stay sharp.
    """
    shown = instances if threshold is None else instances[instances.scores >= threshold]
    scale = max(1.0, side / max(image.shape[:2]))
    enlarged = Image.fromarray(image).resize(
        (round(image.shape[1] * scale), round(image.shape[0] * scale)), Image.Resampling.LANCZOS
    )
    visualizer = Visualizer(np.asarray(enlarged), _metadata(classes), 1.0, ColorMode.SEGMENTATION)
    fields: dict[str, Any] = {"pred_classes": shown.pred_classes}
    if shown.has("scores"):
        fields["scores"] = shown.scores
    boxes = shown.pred_boxes.clone()
    boxes.scale(scale, scale)
    large = Instances((enlarged.height, enlarged.width), pred_boxes=boxes, **fields)
    if shown.has("pred_masks") and len(shown):
        masks = shown.pred_masks[:, None].float()
        size = (enlarged.height, enlarged.width)
        large.pred_masks = nn.functional.interpolate(masks, size, mode="bilinear")[:, 0] > 0.5
    return visualizer.draw_instance_predictions(large).get_image()


def class_names(config: DictConfig) -> list[str]:
    """Names of the classes: those the run recorded, else those of its data set."""
    if config.class_names:
        return list(config.class_names)
    return list(MetadataCatalog.get(config.dataloader.test.dataset.names).thing_classes)


def prediction_sheet(
    predictor: Predictor, dataset: str, count: int, threshold: float = 0.5, side: int = 480
) -> Image.Image:
    """Predictions on images spread over a registered data set, as one picture, four in a row."""
    entries = DatasetCatalog.get(dataset)
    chosen = entries[:: max(1, len(entries) // count)][:count]
    classes = MetadataCatalog.get(dataset).thing_classes
    images = [read_image(entry["file_name"]) for entry in chosen]
    drawn = [draw(image, predictor(image), classes, threshold, side) for image in images]
    return contact_sheet(drawn, side)


def _metadata(classes: Sequence[str]) -> Any:
    name = "drawing:" + ",".join(classes)
    return MetadataCatalog.get(name).set(thing_classes=list(classes))
