"""The one reader of masks: trained class ids, upright, of the picture's size."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from srvit_backbone.errors import InputError
from srvit_backbone.own_data.geometry import turn_mask
from srvit_backbone.own_data.mask_classes import MaskClasses
from srvit_backbone.own_data.pictures import UNREADABLE, open_picture, reason, upright

LOSSY = ("JPEG", "MPO", "WEBP")
MOST_COLOURS = 4096


@dataclass(frozen=True)
class Scan:
    """What a mask's file holds.

    Attributes:
        size: Width and height.
        unknown: Values that are no class and not to be ignored.
        trained: Trained ids that occur, IGNORED among them.
        values: All values as they stand.
        error: Why it cannot be used, "" if it can.
    """

    size: tuple[int, int] = (0, 0)
    unknown: tuple[Any, ...] = ()
    trained: frozenset[int] = frozenset()
    values: frozenset[Any] = frozenset()
    error: str = ""


def read_mask(path: str | Path, classes: MaskClasses, turn: int = 1) -> np.ndarray:
    """Trained ids (H, W), uint8.

    Args:
        path: The mask.
        classes: What its values mean.
        turn: EXIF orientation of its picture, where the mask is of the stored pixels.

    Raises:
        InputError: It cannot be opened, is of another kind, or has values that are no class.
    """
    try:
        with open_picture(path) as picture:
            values = _values(picture, classes)
    except UNREADABLE as error:
        raise InputError(f"{path} is no mask that can be read: {reason(error)}") from None
    ids, unknown = classes.encode(values)
    if unknown:
        raise InputError(f"{path} has {_named(unknown)}, which {classes.source} does not name")
    return turn_mask(ids, turn)


def scan_mask(path: Path, classes: MaskClasses) -> Scan:
    """What a mask holds, without its pixels in Python."""
    try:
        with open_picture(path) as picture:
            if picture.format in LOSSY:
                return Scan(error=f"{picture.format} changes ids: save masks as PNG")
            values = _values(picture, classes)
    except UNREADABLE as error:
        return Scan(error=reason(error))
    size = values.shape[1], values.shape[0]
    # A small picture of the values instead of all pixels.
    if values.ndim == 3:
        packed = np.unique(values.reshape(-1, 3).astype(np.int64) @ (65536, 256, 1))
        small = np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=-1)[None]
        seen = frozenset(map(tuple, small[0].tolist()))
    else:
        few = np.flatnonzero(np.bincount(values.ravel())) if values.dtype == np.uint8 else None
        small = (np.unique(values) if few is None else few)[None]
        seen = frozenset(small[0].tolist())
    ids, unknown = classes.encode(small)
    return Scan(size, tuple(unknown), frozenset(np.unique(ids).tolist()), seen)


def _values(picture: Image.Image, classes: MaskClasses) -> np.ndarray:
    """Ids (H, W) or, where classes have colours, colours (H, W, 3).

    Raises:
        ValueError: The mask is of neither sort.
    """
    picture = upright(picture)
    if classes.colours and not classes.ids or classes.colours and picture.mode not in ("L", "1"):
        return np.asarray(picture.convert("RGB"))
    if picture.mode in ("LA", "PA"):
        picture = picture.getchannel(0)
    if picture.mode in ("RGB", "RGBA"):
        pixels = np.asarray(picture)
        if (
            not (pixels[..., 0] == pixels[..., 1]).all()
            or not (pixels[..., 1] == pixels[..., 2]).all()
        ):
            raise ValueError(
                "it holds colours, not ids: name them in a file, SEG_CLASSES=classes.yaml with "
                "road: {color: [128, 64, 128]}, a line each class"
            )
        return pixels[..., 0]
    if picture.mode == "1":
        return np.asarray(picture).astype(np.uint8)
    if picture.mode in ("L", "P"):
        return np.asarray(picture)
    if picture.mode.startswith("I"):
        return np.asarray(picture).astype(np.int64)
    raise ValueError(f"masks of mode {picture.mode} have no ids: save them as 8-bit PNG")


def _named(values: Sequence[Any]) -> str:
    shown = ", ".join(str(value) for value in values[:5])
    kind = "colours" if values and isinstance(values[0], tuple) else "ids"
    return f"{kind} {shown}{' and more' if len(values) > 5 else ''}"
