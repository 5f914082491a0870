"""LabelMe's json files, one a picture."""

import base64
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from srvit_backbone.errors import InputError
from srvit_backbone.own_data.files import IGNORED_FOLDERS, PictureFolder, read_json
from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.objects import Labelled
from srvit_backbone.own_data.outlines import number
from srvit_backbone.own_data.splits import split_of

CIRCLE = 32  # corners of a circle


def find_labelme(folder: Path, findings: Findings) -> dict[str, list[Labelled]]:
    """Labels by split of a folder with json files in LabelMe's form; {} if it has none."""
    contents: dict[Path, dict[str, Any]] = {}
    for path in sorted(folder.rglob("*.json")):
        if IGNORED_FOLDERS & set(path.parts):
            continue
        try:
            content = read_json(path)
        except InputError as error:
            findings.problem("json files that cannot be read", error, "mend or remove them")
            continue
        if isinstance(content, dict) and isinstance(content.get("shapes"), list):
            contents[path] = content
    names = sorted({str(s.get("label")) for c in contents.values() for s in c["shapes"]})
    ids = {name: index for index, name in enumerate(names, 1)}
    splits: dict[str, dict[Path, dict[str, Any]]] = {}
    for path, content in contents.items():
        splits.setdefault(split_of(path, folder), {})[path] = content
    pictures = PictureFolder(folder)
    return {s: [_read(folder, own, ids, pictures, findings)] for s, own in splits.items()}


def _read(
    folder: Path,
    contents: dict[Path, dict[str, Any]],
    ids: dict[str, int],
    pictures: PictureFolder,
    findings: Findings,
) -> Labelled:
    labels = Labelled(str(folder), folder)
    labels.categories = [{"id": index, "name": name} for name, index in ids.items()]
    for key, (path, content) in enumerate(contents.items(), 1):
        size = {"width": content.get("imageWidth"), "height": content.get("imageHeight")}
        name = _picture_of(path, content, folder, pictures)
        labels.images.append({"id": key, "file_name": name, **size})
        groups: dict[Any, dict[str, Any]] = {}
        for position, shape in enumerate(content["shapes"]):
            place = f"{path}, shape {position + 1}"
            outline = _outline(shape, size, place, findings)
            if outline is None:
                continue
            label = ids[str(shape.get("label"))]
            # Parts of one object have a group of their own.
            group = shape.get("group_id")
            handle = (label, group) if group is not None else (label, "alone", position)
            known = groups.get(handle)
            if known and isinstance(outline, list) and isinstance(known["segmentation"], list):
                known["segmentation"] += outline
            else:
                groups[handle if known is None else (handle, position)] = {
                    "image_id": key, "category_id": label, "iscrowd": 0, "segmentation": outline,
                }  # fmt: skip
        labels.annotations += groups.values()
    for index, note in enumerate(labels.annotations, 1):
        note["id"] = index
    return labels


def _picture_of(path: Path, content: dict[str, Any], folder: Path, pictures: PictureFolder) -> str:
    stated = str(content.get("imagePath") or "").replace("\\", "/")
    beside = (path.parent / stated).resolve() if stated else None
    if beside and beside.is_file() and beside.is_relative_to(folder.resolve()):
        return str(beside.relative_to(folder.resolve()))
    same = [p for p in pictures.of_stem(path.stem) if p.parent == path.parent]
    same = same or pictures.of_stem(path.stem)
    return str(same[0].relative_to(folder)) if len(same) == 1 else stated or f"{path.stem}.jpg"


def _outline(
    shape: dict[str, Any], size: dict[str, Any], place: str, findings: Findings
) -> list[list[float]] | dict[str, Any] | None:
    kind = shape.get("shape_type") or "polygon"
    try:
        points = [[number(v) for v in point] for point in shape["points"]]
    except (KeyError, TypeError, ValueError):
        findings.problem("shapes without points", place, "draw them anew")
        return None
    if kind == "rectangle" and len(points) == 2:
        (x0, y0), (x1, y1) = points
        return [[x0, y0, x1, y0, x1, y1, x0, y1]]
    if kind == "circle" and len(points) == 2:
        (x, y), edge = points
        radius = math.dist((x, y), edge)
        angles = [2 * math.pi * i / CIRCLE for i in range(CIRCLE)]
        corners = [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles]
        return [[v for corner in corners for v in corner]]
    if kind == "mask" and shape.get("mask") and len(points) == 2:
        return _mask(shape["mask"], points[0], size)
    if kind in ("polygon", "rectangle", "oriented_rectangle") and len(points) >= 3:
        return [[v for point in points for v in point]]
    findings.note(f"shapes of type {kind} with {len(points)} points", place, "left out")
    return None


def _mask(coded: str, corner: list[float], size: dict[str, Any]) -> dict[str, Any]:
    from pycocotools import mask as rle

    with Image.open(io.BytesIO(base64.b64decode(coded))) as picture:
        part = np.asarray(picture.convert("L")) > 0
    whole = np.zeros((int(size["height"]), int(size["width"])), np.uint8)
    x, y = (round(v) for v in corner)
    target = whole[y : y + part.shape[0], x : x + part.shape[1]]
    target[:] = part[: target.shape[0], : target.shape[1]]
    found = rle.encode(np.asfortranarray(whole))
    return {"size": list(whole.shape), "counts": found["counts"].decode("ascii")}
