"""Figures of matplotlib into files, without a display."""

from pathlib import Path

import matplotlib

from srvit_backbone.errors import InputError

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  behind the choice of its backend


def check_figure_file(path: Path) -> None:
    """Raise InputError unless a figure can be written as the file's name says."""
    if path.suffix not in (".png", ".pdf"):
        raise InputError(f"--output {path}: must end in .png or .pdf")


def save_figure(figure: plt.Figure, path: Path) -> None:
    """Write a figure, its folder too, and close it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
