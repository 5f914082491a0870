"""Outlines of objects, in all the forms that annotation tools write, as polygons or COCO's RLE."""

import math
from typing import Any

import numpy as np

from srvit_backbone.own_data.geometry import (
    bounding_box,
    polygon_area,
    turn_mask,
    turn_polygon,
)

# Polygons, RLE ({"size": [H, W], "counts": str}), or None for no outline.
Outline = list[list[float]] | dict[str, Any] | None


class OutlineError(ValueError):
    """An outline that cannot be read; the message says why."""


def number(value: Any) -> float:
    """A finite number, also of a string.

    Raises:
        ValueError: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    found = float(value)
    if not math.isfinite(found):
        raise ValueError
    return found


def read_outline(value: Any, size: tuple[int, int]) -> tuple[Outline, bool]:
    """An outline as its file has it, and whether its form had to be changed.

    Args:
        value: ``segmentation`` of a COCO json.
        size: Width and height in pixels of the picture it was drawn on.

    Returns:
        Without polygons that have fewer than three points or no area: [] if none is left.

    Raises:
        OutlineError: It is of no known form.
    """
    if value is None or value in ([], "", {}, [[]]):
        return None, value is not None
    if isinstance(value, dict):
        return _read_rle(value, size)
    if not isinstance(value, list):
        raise OutlineError(f"segmentation is a {type(value).__name__}")
    polygons = [_polygon(part) for part in _parts(value)]
    kept = [p for p in polygons if len(p) >= 6 and len(p) % 2 == 0 and polygon_area(p) > 0]
    return kept, kept != value


def _parts(value: list) -> list[Any]:
    """The polygons of a list that is one, or several, of numbers or of points."""
    first = value[0]
    if not isinstance(first, list | dict):
        return [value]  # flat: one polygon
    if isinstance(first, list) and len(first) == 2 and all(_is_point(p) for p in value):
        return [value]  # [[x, y], ...]
    if isinstance(first, dict) and "x" in first:
        return [value]  # [{"x": , "y": }, ...]
    return value


def _is_point(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and not isinstance(value[0], list | dict)


def _polygon(part: Any) -> list[float]:
    try:
        if part and isinstance(part[0], dict):
            return [number(point[axis]) for point in part for axis in ("x", "y")]
        if part and isinstance(part[0], list):
            return [number(value) for point in part for value in point]
        return [number(value) for value in part]
    except (TypeError, ValueError, KeyError, IndexError):
        raise OutlineError("a polygon holds what is no number") from None


def _read_rle(value: dict[str, Any], size: tuple[int, int]) -> tuple[Outline, bool]:
    from pycocotools import mask as rle

    width, height = size
    stated, counts = value.get("size"), value.get("counts")
    if not isinstance(stated, list) or len(stated) != 2 or counts is None:
        raise OutlineError("an RLE lacks size or counts")
    if [int(side) for side in stated] != [height, width]:
        raise OutlineError("an RLE is of another size than its picture")
    if isinstance(counts, list):
        if sum(counts) != width * height:
            raise OutlineError("an RLE's counts do not fill its picture")
        counts = rle.frPyObjects({"size": [height, width], "counts": counts}, height, width)
        return _as_text(counts), True
    try:
        area = int(rle.area({"size": [height, width], "counts": counts}))
    except (TypeError, ValueError) as error:
        raise OutlineError(f"an RLE cannot be read ({error})") from None
    if not 0 <= area <= width * height:
        raise OutlineError("an RLE's counts do not fill its picture")
    return _as_text({"size": [height, width], "counts": counts}), False


def _as_text(coded: dict[str, Any]) -> dict[str, Any]:
    counts = coded["counts"]
    return {
        "size": [int(side) for side in coded["size"]],
        "counts": counts.decode("ascii") if isinstance(counts, bytes) else counts,
    }


def turn_outline(outline: Outline, orientation: int, stored: tuple[int, int]) -> Outline:
    """An outline of stored pixels, upright."""
    if not outline or orientation == 1:
        return outline
    if isinstance(outline, list):
        return [turn_polygon(polygon, orientation, stored) for polygon in outline]
    from pycocotools import mask as rle

    mask = turn_mask(rle.decode(outline), orientation)
    return _as_text(rle.encode(np.asfortranarray(mask)))


def box_of(outline: Outline) -> list[float] | None:
    """[x, y, width, height] around an outline."""
    if not outline:
        return None
    if isinstance(outline, list):
        return bounding_box(outline)
    from pycocotools import mask as rle

    return [float(side) for side in rle.toBbox(outline)]


def area_of(outline: Outline, box: list[float]) -> float:
    """Pixels inside an outline, else of the box."""
    if not outline:
        return box[2] * box[3]
    if isinstance(outline, list):
        return sum(polygon_area(polygon) for polygon in outline)
    from pycocotools import mask as rle

    return float(rle.area(outline))
