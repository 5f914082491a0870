"""Checks of a COCO json and its pictures."""

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from srvit_backbone.own_data.findings import Finding, check_overlap, check_picture

LISTS = ("images", "annotations", "categories")
# Boxes may end this much outside their picture: annotation tools round.
TOLERANCE = 1.0


def check_coco(train: tuple[Path, Path], val: tuple[Path, Path]) -> list[Finding]:
    """Findings of both splits, each a json file and the folder of its pictures."""
    findings: list[Finding] = []
    contents = []
    for path, folder in (train, val):
        content, found = _read(path)
        findings += found
        if content is not None:
            findings += _check_split(path, content, folder)
        contents.append(content)
    if None in contents:
        return findings
    classes = [{c.get("id"): c.get("name") for c in content["categories"]} for content in contents]
    if classes[0] != classes[1]:
        what = f"has other categories than {train[0]}: {classes[1]} instead of {classes[0]}"
        findings.append(Finding(str(val[0]), what))
    pictures = [
        [folder / str(image.get("file_name")) for image in content["images"]]
        for content, (_, folder) in zip(contents, (train, val), strict=True)
    ]
    return findings + check_overlap(*pictures)


def _read(path: Path) -> tuple[dict[str, Any] | None, list[Finding]]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        return None, [Finding(str(path), f"cannot be read as json ({error})")]
    lists = content if isinstance(content, dict) else {}
    missing = [key for key in LISTS if not isinstance(lists.get(key), list)]
    if missing:
        return None, [Finding(str(path), f"is not in COCO's form: no list {', '.join(missing)}")]
    return content, []


def _check_split(path: Path, content: dict[str, Any], folder: Path) -> list[Finding]:
    findings = []
    for key in LISTS:
        counts = Counter(entry.get("id") for entry in content[key])
        findings += [
            Finding(f"{path}, {key}", f"id {number} is used {count} times")
            for number, count in counts.items()
            if count > 1
        ]
    if not content["images"]:
        findings.append(Finding(str(path), "lists no images"))
    sizes = {}
    for image in content["images"]:
        file = folder / str(image.get("file_name"))
        found, size = check_picture(file)
        findings += found
        stated = (image.get("width"), image.get("height"))
        if size is not None and stated != size:
            findings.append(Finding(str(file), f"is {size[0]} x {size[1]}, the json says {stated}"))
        sizes[image.get("id")] = size or stated
    known = {category.get("id") for category in content["categories"]}
    for annotation in content["annotations"]:
        where = f"{path}, annotation {annotation.get('id')}"
        findings += [Finding(where, what) for what in _problems(annotation, known, sizes)]
    annotated = {annotation.get("image_id") for annotation in content["annotations"]}
    empty = [number for number in sizes if number not in annotated]
    if empty:
        what = f"{len(empty)} of {len(sizes)} images have no annotation: training leaves them out"
        findings.append(Finding(str(path), what, harmless=True))
    return findings


def _problems(annotation: dict[str, Any], known: set, sizes: dict) -> list[str]:
    problems = []
    if annotation.get("category_id") not in known:
        problems.append(f"category_id {annotation.get('category_id')} is not among the categories")
    if annotation.get("image_id") not in sizes:
        return [*problems, f"image_id {annotation.get('image_id')} is not among the images"]
    width, height = sizes[annotation["image_id"]]
    box = annotation.get("bbox")
    if not _numbers(box) or len(box) != 4:
        problems.append(f"bbox {box} is not [x, y, width, height]")
    elif box[2] <= 0 or box[3] <= 0:
        problems.append(f"bbox {box} has no area: it must be [x, y, width, height]")
    elif (
        min(box[:2]) < -TOLERANCE
        or box[0] + box[2] > width + TOLERANCE
        or box[1] + box[3] > height + TOLERANCE
    ):
        problems.append(f"bbox {box} reaches outside its image of {width} x {height}")
    shape = annotation.get("segmentation")
    if isinstance(shape, dict):  # RLE
        if list(shape.get("size", ())) != [height, width]:
            problems.append(f"its RLE is of size {shape.get('size')}, its image {[height, width]}")
    elif shape is not None:
        problems += _polygon_problems(shape)
    return problems


def _polygon_problems(polygons: Any) -> list[str]:
    if not isinstance(polygons, list) or not polygons:
        return ["its segmentation is empty"]
    for polygon in polygons:
        if not _numbers(polygon) or len(polygon) % 2 or len(polygon) < 6:
            return ["a polygon is not [x0, y0, x1, y1, x2, y2, ...] of three points or more"]
        if _area(polygon) == 0:
            return ["a polygon has no area"]
    return []


def _numbers(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(v, (int, float)) and math.isfinite(v) for v in values
    )


def _area(polygon: list[float]) -> float:
    xs, ys = polygon[::2], polygon[1::2]
    pairs = zip(xs, ys, xs[1:] + xs[:1], ys[1:] + ys[:1], strict=True)
    return abs(sum(x0 * y1 - x1 * y0 for x0, y0, x1, y1 in pairs)) / 2
