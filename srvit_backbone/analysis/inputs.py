"""Pictures as the analyses' models take them."""

import numpy as np
import torch
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import Tensor


def to_input(image: np.ndarray) -> Tensor:
    """Picture (H, W, 3) in RGB, uint8 -> normalised (1, 3, H, W) as all recipes have it."""
    pixels = torch.from_numpy(image.copy()).permute(2, 0, 1).float() / 255
    mean = torch.tensor(IMAGENET_DEFAULT_MEAN)[:, None, None]
    std = torch.tensor(IMAGENET_DEFAULT_STD)[:, None, None]
    return ((pixels - mean) / std)[None]
