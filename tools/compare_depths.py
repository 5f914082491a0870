"""Draw how similar the depths of one or two models are: linear CKA over pictures (appendix B).

    python tools/compare_depths.py srvit_s_t3 --weights pretrained/srvit_s_t3.safetensors \\
        --input pictures/ --output depths.png
    python tools/compare_depths.py srvit_s_t3 --second srvit_deit_s --input pictures/ \\
        --output depths.png

Every application of a block is a depth. The numbers are written beside the picture, as .csv.
"""

import argparse
import csv
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from srvit_backbone.analysis.cka import MIN_BATCH, compare, depth_labels
from srvit_backbone.analysis.figures import check_figure_file, plt, save_figure
from srvit_backbone.analysis.models import open_backbone, to_input
from srvit_backbone.errors import InputError, run_program
from srvit_backbone.pictures import find_pictures, read_image


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


def draw(matrix: np.ndarray, labels: tuple[list, list], names: tuple[str, str]) -> plt.Figure:
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


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a variant's name, or a detector's or segmentor's config")
    parser.add_argument("--weights", default="", help="checkpoint of a model with this backbone")
    parser.add_argument("--second", help="another model; without it, the first with itself")
    parser.add_argument("--second-weights", default="")
    parser.add_argument("--input", nargs="+", required=True, help="pictures or folders of them")
    parser.add_argument("--size", type=int, default=224, help="pixels, of the centre square")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--output", type=Path, required=True, help=".png or .pdf")
    args = parser.parse_args()
    check_figure_file(args.output)
    pictures = find_pictures(args.input)
    if len(pictures) < MIN_BATCH or args.batch < MIN_BATCH:
        raise InputError(
            f"{len(pictures)} pictures in batches of {args.batch}: CKA needs at least {MIN_BATCH}"
        )
    first = open_backbone(args.model, args.weights)
    second = open_backbone(args.second, args.second_weights) if args.second else first
    matrix = compare(first, second, load_batches(pictures, args.batch, args.size)).numpy()
    labels = depth_labels(first), depth_labels(second)
    names = tuple(
        f"{name}, {weights or 'RANDOM WEIGHTS'}"
        for name, weights in (
            (args.model, args.weights),
            (args.second or args.model, args.second_weights if args.second else args.weights),
        )
    )
    save_figure(draw(matrix, labels, names), args.output)
    numbers = args.output.with_suffix(".csv")
    with open(numbers, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *(f"{i + 1}: {s} {t}" for i, (s, t) in enumerate(labels[1]))])
        for index, ((stage, step), row) in enumerate(zip(labels[0], matrix, strict=True)):
            writer.writerow([f"{index + 1}: {stage} {step}", *(f"{value:.6f}" for value in row)])
    print(f"drawn in {args.output}, numbers in {numbers}")


if __name__ == "__main__":
    run_program(main)
