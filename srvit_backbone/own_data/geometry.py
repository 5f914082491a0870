"""Labels turned with their picture: from stored pixels to upright ones, by EXIF orientation."""

import numpy as np

# Orientation -> (x, y, width, height as stored) -> (x, y) upright.
_POINTS = {
    1: lambda x, y, w, h: (x, y),
    2: lambda x, y, w, h: (w - x, y),
    3: lambda x, y, w, h: (w - x, h - y),
    4: lambda x, y, w, h: (x, h - y),
    5: lambda x, y, w, h: (y, x),
    6: lambda x, y, w, h: (h - y, x),
    7: lambda x, y, w, h: (h - y, w - x),
    8: lambda x, y, w, h: (y, w - x),
}
_MASKS = {
    1: lambda mask: mask,
    2: lambda mask: mask[:, ::-1],
    3: lambda mask: mask[::-1, ::-1],
    4: lambda mask: mask[::-1],
    5: lambda mask: mask.T,
    6: lambda mask: mask[::-1].T,
    7: lambda mask: mask[::-1, ::-1].T,
    8: lambda mask: mask.T[::-1],
}
Size = tuple[float, float]


def turn_polygon(polygon: list[float], orientation: int, stored: Size) -> list[float]:
    """[x0, y0, x1, y1, ...] of a picture of ``stored`` width and height."""
    turn = _POINTS[orientation]
    return [
        value
        for x, y in zip(polygon[::2], polygon[1::2], strict=True)
        for value in turn(x, y, *stored)
    ]


def turn_box(box: list[float], orientation: int, stored: Size) -> list[float]:
    """[x, y, width, height] of a picture of ``stored`` width and height."""
    x, y, width, height = box
    corners = turn_polygon([x, y, x + width, y + height], orientation, stored)
    xs, ys = sorted(corners[::2]), sorted(corners[1::2])
    return [xs[0], ys[0], xs[1] - xs[0], ys[1] - ys[0]]


def turn_mask(mask: np.ndarray, orientation: int) -> np.ndarray:
    """(H, W) as stored -> upright."""
    return np.ascontiguousarray(_MASKS[orientation](mask))


def polygon_area(polygon: list[float]) -> float:
    """Of [x0, y0, x1, y1, ...], by the shoelace formula."""
    xs, ys = np.asarray(polygon[::2]), np.asarray(polygon[1::2])
    return float(abs(xs @ np.roll(ys, -1) - ys @ np.roll(xs, -1)) / 2)


def bounding_box(polygons: list[list[float]]) -> list[float]:
    """[x, y, width, height] around polygons."""
    xs = [x for polygon in polygons for x in polygon[::2]]
    ys = [y for polygon in polygons for y in polygon[1::2]]
    return [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]


def cut_box(box: list[float], size: Size) -> list[float]:
    """The part of [x, y, width, height] inside a picture of that width and height."""
    x0, y0 = max(box[0], 0.0), max(box[1], 0.0)
    x1, y1 = min(box[0] + box[2], size[0]), min(box[1] + box[3], size[1])
    return [x0, y0, max(x1 - x0, 0.0), max(y1 - y0, 0.0)]
