"""Training samples of a classifier as the model sees them, drawn."""

import numpy as np
import torch
from omegaconf import DictConfig
from PIL import Image, ImageDraw
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

from srvit_backbone.own_data.pictures import contact_sheet
from srvit_backbone.pretrain.data import build_data
from srvit_backbone.training.stream import seeded


def sample_sheet(recipe: DictConfig, count: int, side: int = 240) -> Image.Image:
    """Augmented training images spread over the data set, each over the name of its class.

    Before mixup and cutmix. Needs torch.distributed to be initialised, as ``build_data`` does.

    Raises:
        InputError: The data are missing, or the classes of the splits differ.
    """
    data = build_data(recipe, 1, torch.device("cpu"))
    dataset, names = data.train.dataset, data.classes
    drawn = []
    for index in range(0, len(dataset), max(1, len(dataset) // count)):
        with seeded(recipe.seed, index):
            image, label = dataset[index]
        pixels = image.permute(1, 2, 0).numpy() * IMAGENET_DEFAULT_STD + IMAGENET_DEFAULT_MEAN
        tile = Image.fromarray((pixels.clip(0, 1) * 255).round().astype(np.uint8))
        canvas = Image.new("RGB", (side, side), "white")
        canvas.paste(tile.resize((side - 20, side - 20)))
        ImageDraw.Draw(canvas).text((4, side - 16), names[label], fill="black")
        drawn.append(np.asarray(canvas))
    return contact_sheet(drawn[:count], side)
