"""Training samples of a segmentor as the model sees them, drawn."""

import numpy as np
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS
from PIL import Image

from srvit_backbone.openmmlab.predict import draw
from srvit_backbone.own_data.pictures import contact_sheet

IGNORED = 255


def sample_sheet(config: Config, count: int, side: int = 480) -> Image.Image:
    """Augmented training images spread over the data set, with their labels over them.

    Args:
        config: Of a segmentor; its training data are drawn.
        count: Images.
        side: Pixels of each.

    Raises:
        InputError: The data are missing, or a mask does not fit.
    """
    init_default_scope(config.default_scope)
    dataset = DATASETS.build(config.train_dataloader.dataset)
    classes = [*dataset.metainfo["classes"], "not labelled"]
    palette = [*dataset.metainfo["palette"], (0, 0, 0)]
    drawn = []
    for index in range(0, len(dataset), max(1, len(dataset) // count)):
        sample = dataset[index, index]  # by (position, index), which seeds the augmentation
        image = sample["inputs"].numpy()[::-1].transpose(1, 2, 0)  # stored in BGR
        labels = sample["data_samples"].gt_sem_seg.data[0].numpy()
        labels = np.where(labels == IGNORED, len(classes) - 1, labels)
        drawn.append(draw(np.ascontiguousarray(image), labels, classes, palette, side))
    return contact_sheet(drawn[:count], side)
