"""Scikit-learn's handwritten digits as a folder a class."""

from pathlib import Path

import numpy as np
from PIL import Image


def write_digits(folder: Path, seed: int) -> None:
    """Write the handwritten digits, a fifth of each class for validation."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(seed)
    digits = load_digits()
    for label in range(10):
        chosen = rng.permutation(np.nonzero(digits.target == label)[0])
        for position, index in enumerate(chosen):
            part = folder / ("val" if position < len(chosen) // 5 else "train") / str(label)
            part.mkdir(parents=True, exist_ok=True)
            pixels = (digits.images[index] / 16 * 255).round().astype(np.uint8)
            Image.fromarray(pixels).convert("RGB").save(part / f"{index:04d}.png")
