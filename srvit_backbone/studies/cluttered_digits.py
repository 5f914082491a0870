"""A small task that tells models apart: real digits under clutter, few labels.

One of scikit-learn's handwritten digits, shifted, partly covered by a piece of another. The
training scenes show few different digits; the test scenes show others, by other hands, always the
same.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from srvit_backbone.srvit import SRViT

SIZE, DIGIT, PIECE = 24, 20, 8  # pixels of a scene, a digit and a piece of one
PIECES = 1
TRAIN_DIGITS_PER_CLASS = 50
TEST_SCENES_PER_DIGIT = 6
CLASSES = 10

# The model's and the training's constants; a cell of an ablation changes the model's arguments.
MODEL: dict[str, Any] = {
    "img_size": SIZE,
    "patch_size": 6,
    "in_chans": 1,
    "num_classes": CLASSES,
    "embed_dim": 64,
    "num_heads": 2,
    "unit_depths": (2, 1),
    "init": "fan_in",
}
BATCH, STEPS, WARMUP, LR, WEIGHT_DECAY = 50, 1000, 100, 2e-3, 0.05


def load_digits() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Per class, training and test digits (n, DIGIT, DIGIT) as float32 in [0, 1]."""
    from sklearn.datasets import load_digits as load

    data = load()
    pixels = torch.from_numpy(data.images).float()[:, None] / 16
    large = nn.functional.interpolate(pixels, size=(DIGIT, DIGIT), mode="bicubic")
    digits = large[:, 0].clamp(0, 1).numpy()
    # The data set is ordered by writer: its beginning and its end are different hands.
    classes = [digits[data.target == label] for label in range(CLASSES)]
    train = [members[:TRAIN_DIGITS_PER_CLASS] for members in classes]
    return train, [members[-len(members) // 5 :] for members in classes]


def compose(digit: np.ndarray, others: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A scene (SIZE, SIZE): the digit, then pieces of other digits in front of it."""
    scene = np.zeros((SIZE, SIZE), np.float32)
    top, left = rng.integers(0, SIZE - DIGIT + 1, 2)
    scene[top : top + DIGIT, left : left + DIGIT] = digit
    for _ in range(PIECES):
        source = others[rng.integers(len(others))]
        row, column = rng.integers(0, DIGIT - PIECE + 1, 2)
        top, left = rng.integers(0, SIZE - PIECE + 1, 2)
        piece = source[row : row + PIECE, column : column + PIECE]
        scene[top : top + PIECE, left : left + PIECE] = piece
    return scene


def scenes(
    classes: list[np.ndarray], labels: np.ndarray, picks: np.ndarray, rng: np.random.Generator
) -> Tensor:
    """Scenes (n, 1, SIZE, SIZE), normalised, of the digits ``classes[label][pick]``."""
    others = np.concatenate(classes)
    composed = [
        compose(classes[label][pick], others, rng)
        for label, pick in zip(labels, picks, strict=True)
    ]
    return (torch.from_numpy(np.stack(composed))[:, None] - 0.25) / 0.35


def build(settings: dict) -> SRViT:
    """The small SR-ViT with a cell's arguments."""
    return SRViT(**{**MODEL, **settings})


def train_and_test(settings: dict, seed: int) -> float:
    """Train a model with a cell's arguments; accuracy in percent on the test scenes."""
    train, test = load_digits()
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    model = build(settings)
    decayed = [p for p in model.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if p.ndim != 2]
    groups: list[dict] = [{"params": decayed}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, weight_decay=WEIGHT_DECAY)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, _cosine)
    for _ in range(STEPS):
        labels = rng.integers(0, CLASSES, BATCH)
        picks = rng.integers(0, TRAIN_DIGITS_PER_CLASS, BATCH)
        logits = model(scenes(train, labels, picks, rng))
        nn.functional.cross_entropy(logits, torch.from_numpy(labels)).backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    return _accuracy(model.eval(), test)


def _cosine(step: int) -> float:
    if step < WARMUP:
        return (step + 1) / WARMUP
    return (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))) / 2


@torch.inference_mode()
def _accuracy(model: SRViT, test: list[np.ndarray]) -> float:
    rng = np.random.default_rng(0)  # the same scenes for every model
    right = total = 0
    for label, members in enumerate(test):
        picks = np.repeat(np.arange(len(members)), TEST_SCENES_PER_DIGIT)
        images = scenes(test, np.full(len(picks), label), picks, rng)
        right += int((model(images).argmax(dim=1) == label).sum())
        total += len(picks)
    return 100 * right / total
