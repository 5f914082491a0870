"""Training samples of a detector as the model sees them, drawn."""

import numpy as np
from detectron2.config import instantiate
from detectron2.structures import Instances
from omegaconf import DictConfig
from PIL import Image

from srvit_backbone.detectron2.predict import draw
from srvit_backbone.own_data.pictures import contact_sheet


def sample_sheet(config: DictConfig, count: int, side: int = 480) -> Image.Image:
    """Augmented training images spread over the data set, with their boxes, masks and classes.

    Args:
        config: A LazyConfig whose data are prepared (``config.prepare_data``).
        count: Images.
        side: Pixels of each.

    Raises:
        InputError: An image cannot be used.
    """
    samples = instantiate({**config.dataloader.train, "num_workers": 0}).dataset
    drawn = []
    for index in range(0, len(samples), max(1, len(samples) // count)):
        sample = samples[index, index]
        image = sample["image"].numpy().transpose(1, 2, 0)
        if config.model.input_format == "BGR":
            image = image[:, :, ::-1]
        labels = _as_found(sample["instances"])
        drawn.append(draw(np.ascontiguousarray(image), labels, config.class_names, None, side))
    return contact_sheet(drawn[:count], side)


def _as_found(labels: Instances) -> Instances:
    found = Instances(labels.image_size, pred_boxes=labels.gt_boxes, pred_classes=labels.gt_classes)
    if labels.has("gt_masks"):
        found.pred_masks = labels.gt_masks.tensor
    return found
