"""YOLO's text files, a line an object, with data.yaml or classes.txt."""

from pathlib import Path
from typing import Any

import yaml

from srvit_backbone.errors import InputError
from srvit_backbone.own_data.files import read_text
from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.objects import Labelled
from srvit_backbone.own_data.outlines import number
from srvit_backbone.own_data.pictures import is_picture

CONFIGS = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
SPLITS = {"train": ("train",), "val": ("val", "valid", "validation"), "test": ("test",)}


def find_yolo(folder: Path, findings: Findings) -> dict[str, list[Labelled]]:
    """Labels by split of a folder with data.yaml, or with classes.txt; {} if it has neither.

    Raises:
        InputError: data.yaml cannot be read.
    """
    config = next((folder / name for name in CONFIGS if (folder / name).is_file()), None)
    if config is None:
        classes = folder / "classes.txt"
        if not classes.is_file():
            return {}
        names = dict(enumerate(filter(None, read_text(classes).splitlines())))
        pictures = folder / "images" if (folder / "images").is_dir() else folder
        return {"": [_read(folder, _pictures([pictures]), names, findings)]}
    try:
        content = yaml.safe_load(read_text(config))
    except yaml.YAMLError as error:
        raise InputError(f"{config} is not yaml: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict) or "names" not in content:
        raise InputError(f"{config} names no classes: it needs names: [a, b, ...]")
    found = {}
    for split, keys in SPLITS.items():
        value = next((content[key] for key in keys if content.get(key)), None)
        if value is None:
            continue
        places: list[Path] = []
        for named in value if isinstance(value, list) else [value]:
            place = _place(config, content, named)
            if place is None:
                findings.problem(f"{config.name} names a place that is not there", named)
            else:
                places.append(place)
        listed = _pictures(places)
        found[split] = [_read(folder, listed, _names(content["names"], config), findings)]
    if not found:
        raise InputError(f"{config} names no pictures: it needs train: and val:")
    return found


def _names(names: Any, config: Path) -> dict[int, str]:
    if isinstance(names, list):
        return {index: str(name) for index, name in enumerate(names)}
    if isinstance(names, dict):
        return {int(index): str(name) for index, name in names.items()}
    raise InputError(f"{config}: names must be a list, or number: name")


def _place(config: Path, content: dict[str, Any], value: Any) -> Path | None:
    """Where a split is: by ``path``, or beside data.yaml, also where exports say ../ too much."""
    root = config.parent
    bases = [root / str(content["path"])] if content.get("path") else []
    plain = str(value).replace("\\", "/")
    tries = [base / plain for base in (*bases, root)]
    tries.append(root / plain.lstrip("./"))
    return next((place for place in tries if place.exists()), None)


def _pictures(places: list[Path]) -> list[Path]:
    found: list[Path] = []
    for place in places:
        if place.is_file():  # a list of pictures
            lines = [line.strip() for line in read_text(place).splitlines() if line.strip()]
            found += [p if (p := Path(line)).is_absolute() else place.parent / p for line in lines]
        else:
            found += sorted(p for p in place.rglob("*") if is_picture(p))
    return found


def _label_file(picture: Path) -> Path:
    """labels/... for images/..., else beside the picture."""
    parts = list(picture.parts)
    if "images" in parts[:-1]:
        last = len(parts) - 2 - parts[-2::-1].index("images")
        parts[last] = "labels"
        return Path(*parts).with_suffix(".txt")
    return picture.with_suffix(".txt")


def _read(
    folder: Path, pictures: list[Path], names: dict[int, str], findings: Findings
) -> Labelled:
    labels = Labelled(str(folder), folder, turned="upright", shares=True)
    labels.categories = [{"id": index, "name": name} for index, name in names.items()]
    for number_, picture in enumerate(pictures, 1):
        try:
            name = str(picture.relative_to(folder))
        except ValueError:
            name = str(picture.resolve())
        labels.images.append({"id": number_, "file_name": name})
        file = _label_file(picture)
        if not file.is_file():
            findings.note("pictures without a label file", name, "taken as showing nothing")
            continue
        for line_number, line in enumerate(read_text(file).splitlines(), 1):
            if line.strip():
                found = _object(line, f"{file}, line {line_number}", names, findings)
                if found:
                    labels.annotations.append({**found, "image_id": number_})
    for index, note in enumerate(labels.annotations, 1):
        note["id"] = index
    return labels


def _object(
    line: str, place: str, names: dict[int, str], findings: Findings
) -> dict[str, Any] | None:
    try:
        label, *values = map(number, line.split())
    except ValueError:
        findings.problem("lines that are not numbers", place, "write: class x y width height")
        return None
    if label not in names:
        findings.problem(f"class {label:g} is not among the names", place, "add it to data.yaml")
        return None
    if len(values) == 5:
        findings.note("boxes with a sixth number", place, "it is taken for a score and left out")
        values = values[:4]
    if len(values) != 4 and (len(values) < 6 or len(values) % 2):
        findings.problem(
            f"lines of {len(values) + 1} numbers", place,
            "write: class x y width height, or class x0 y0 x1 y1 x2 y2 ...",
        )  # fmt: skip
        return None
    if max(values) > 1.02 or min(values) < -0.02:
        findings.problem(
            "coordinates that are no shares of the picture", place, "YOLO's are from 0 to 1"
        )
        return None
    found: dict[str, Any] = {"category_id": int(label), "iscrowd": 0, "area": None}
    if len(values) == 4:
        x, y, width, height = values
        return {**found, "bbox": [x - width / 2, y - height / 2, width, height]}
    return {**found, "segmentation": [values]}
