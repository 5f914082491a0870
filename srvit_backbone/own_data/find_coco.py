"""COCO json files somewhere in a folder, with the pictures they are about."""

from pathlib import Path
from typing import Any

from srvit_backbone.errors import InputError
from srvit_backbone.own_data.coco import LISTS
from srvit_backbone.own_data.files import IGNORED_FOLDERS, PictureFolder, read_json
from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.objects import Labelled
from srvit_backbone.own_data.splits import split_of

DEPTH = 3  # folders below which no json is looked for
SAMPLE = 20  # pictures by which a folder of them is recognised


def find_coco(folder: Path, findings: Findings) -> dict[str, list[Labelled]]:
    """Labels by split of the json files in COCO's form below a folder; {} if there are none.

    Beside COCO's own instances_*.json the files of its other tasks are left alone.
    """
    contents: dict[Path, dict[str, Any]] = {}
    for path in sorted(folder.rglob("*.json")):
        parts = path.relative_to(folder).parts
        if len(parts) > DEPTH or IGNORED_FOLDERS & set(parts) or path.name.startswith("."):
            continue
        try:
            content = read_json(path)
        except InputError as error:
            findings.note("json files that cannot be read", error, "not used")
            continue
        if isinstance(content, dict) and all(isinstance(content.get(k), list) for k in LISTS):
            contents[path] = content
    if any(path.name.startswith("instances_") for path in contents):
        contents = {p: c for p, c in contents.items() if p.name.startswith("instances_")}
    found: dict[str, list[Labelled]] = {}
    for path, content in contents.items():
        split = split_of(path, folder)
        pictures = pictures_of(path, content["images"], folder, split)
        lists = {key: [e for e in content[key] if isinstance(e, dict)] for key in LISTS}
        found.setdefault(split, []).append(
            Labelled(
                str(path), pictures, lists["images"], lists["annotations"], lists["categories"]
            )
        )
    return found


def pictures_of(path: Path, images: list[dict[str, Any]], root: Path, split: str) -> Path:
    """The folder from which a json's file names lead to pictures."""
    names = [str(image.get("file_name")) for image in images if isinstance(image, dict)][:SAMPLE]
    suffix = path.stem.split("_")[-1]
    same_split = [
        p
        for base in (root, root / "images")
        if base.is_dir()
        for p in sorted(base.iterdir())
        if p.is_dir() and split and split_of(p, base) == split
    ]
    candidates = [
        path.parent,
        path.parent / "images",
        path.with_suffix(""),
        root / suffix,
        root / "images" / suffix,
        *same_split,
        *(p / "images" for p in same_split),
        root / "images",
        root,
    ]
    counts = [
        (sum((place / name).is_file() for name in names), -number)
        for number, place in enumerate(candidates)
    ]
    best, position = max(counts)
    if best:
        return candidates[-position]
    deep = PictureFolder(root)
    return root if any(deep.find(name) for name in names) else path.parent
