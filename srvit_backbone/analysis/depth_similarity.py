"""How similar the depths of models are, as a picture and as numbers (appendix B)."""

import csv
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from srvit_backbone.analysis.cka import MIN_BATCH
from srvit_backbone.analysis.figures import plt
from srvit_backbone.analysis.inputs import to_input
from srvit_backbone.own_data.pictures import read_image

Labels = list[tuple[str, int]]


def load_batches(pictures: list[Path], batch: int, size: int) -> Iterator[Tensor]:
    """Batches (B, 3, size, size) of the pictures' centres; a last one too small is left out."""
    for start in range(0, len(pictures), batch):
        chosen = pictures[start : start + batch]
        if len(chosen) < MIN_BATCH:
            print(f"{len(chosen)} pictures left over: not used, a batch needs {MIN_BATCH}")
            return
        images = [Image.fromarray(read_image(str(path))) for path in chosen]
        yield torch.cat([to_input(np.asarray(ImageOps.fit(i, (size, size)))) for i in images])
        print(f"{start + len(chosen)} of {len(pictures)} pictures")


def draw(matrix: np.ndarray, labels: tuple[Labels, Labels], names: tuple[str, str]) -> plt.Figure:
    """Heat map with units marked by lines and names, steps by thin lines."""
    figure, axis = plt.subplots(figsize=(8, 7), layout="constrained")
    image = axis.imshow(matrix, vmin=0, vmax=1, cmap="magma", origin="lower")
    figure.colorbar(image, label="linear CKA")
    marks = (
        (axis.axvline, axis.set_xticks, axis.set_xlabel, labels[1], names[1]),
        (axis.axhline, axis.set_yticks, axis.set_ylabel, labels[0], names[0]),
    )
    for line, set_ticks, set_label, depths, name in marks:
        position, ticks, texts = 0, [], []
        for (stage, step), members in groupby(depths):
            count = len(list(members))
            if position:
                line(position - 0.5, color="white", linewidth=1.2 if step == 1 else 0.4)
            ticks.append(position + (count - 1) / 2)
            texts.append(f"{stage}, step {step}" if stage.startswith("unit") else stage)
            position += count
        set_ticks(ticks, texts, fontsize=7)
        set_label(name)
    axis.tick_params(axis="x", rotation=90)
    return figure


def write_csv(matrix: np.ndarray, labels: tuple[Labels, Labels], path: Path) -> None:
    """The numbers, rows and columns named by stage and step."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *(f"{i + 1}: {s} {t}" for i, (s, t) in enumerate(labels[1]))])
        for index, ((stage, step), row) in enumerate(zip(labels[0], matrix, strict=True)):
            writer.writerow([f"{index + 1}: {stage} {step}", *(f"{value:.6f}" for value in row)])
