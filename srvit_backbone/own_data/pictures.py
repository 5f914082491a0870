"""Reading pictures, and putting several on one sheet."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from srvit_backbone.errors import InputError

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"}


def find_pictures(inputs: list[str]) -> list[Path]:
    """The files named, and the pictures in the folders named.

    Raises:
        InputError: There is none.
    """
    found: list[Path] = []
    for path in map(Path, inputs):
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
        elif path.is_file():
            found.append(path)
        else:
            raise InputError(f"no picture or folder {path}")
    if not found:
        raise InputError(f"no pictures ({', '.join(sorted(SUFFIXES))}) in {', '.join(inputs)}")
    return found


def read_image(path: str) -> np.ndarray:
    """A picture as (H, W, 3) in RGB, uint8, turned upright.

    Raises:
        InputError: It cannot be opened.
    """
    try:
        with Image.open(path) as picture:
            # Not a view: torch warns of arrays that cannot be written.
            return np.array(ImageOps.exif_transpose(picture).convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:
        raise InputError(f"{path} is not a picture that can be opened: {error}") from None


def contact_sheet(pictures: Iterable[np.ndarray], side: int = 480, columns: int = 4) -> Image.Image:
    """Pictures (H, W, 3) in RGB, uint8, in rows, each made to fit a square of ``side`` pixels."""
    tiles = [Image.fromarray(picture) for picture in pictures]
    columns = min(columns, len(tiles))
    sheet = Image.new("RGB", (columns * side, -(-len(tiles) // columns) * side), "white")
    for index, tile in enumerate(tiles):
        tile.thumbnail((side, side))
        sheet.paste(tile, (index % columns * side, index // columns * side))
    return sheet
