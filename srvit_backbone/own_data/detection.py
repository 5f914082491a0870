"""A data set for detection, from four paths or from one folder: read, understood, checked."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srvit_backbone.errors import InputError
from srvit_backbone.files import write_json
from srvit_backbone.own_data.coco import LISTS, normalise, read_coco
from srvit_backbone.own_data.find_coco import find_coco
from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.labelme import find_labelme
from srvit_backbone.own_data.objects import Labelled, Objects, unify
from srvit_backbone.own_data.overlap import find_overlap
from srvit_backbone.own_data.pictures import is_picture
from srvit_backbone.own_data.splits import assign, split_off
from srvit_backbone.own_data.voc import find_voc
from srvit_backbone.own_data.yolo import find_yolo

# In the order in which they are looked for.
FORMATS = {"COCO": find_coco, "YOLO": find_yolo, "Pascal VOC": find_voc, "LabelMe": find_labelme}
SPLITS = ("train", "val")
PATHS = ("train_json", "train_images", "val_json", "val_images")


@dataclass
class Detection:
    """Both splits, normalised.

    Attributes:
        train: For training.
        val: For validation.
        classes: Names, in the order of the category ids 1, 2, ...
        findings: What is to be said; empty of problems once ``findings.stop_on_problems`` is over.
        said: What the data were taken for, in lines.
        source: Fingerprint of the files that were read.
    """

    train: Objects
    val: Objects
    classes: list[str]
    findings: Findings
    said: list[str] = field(default_factory=list)
    source: dict[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """What is kept beside a run: what was found, in which files, where they are."""
        return {
            **self.source,
            "taken for": self.said,
            "findings": [str(finding) for finding in self.findings],
            "folders": {"train": str(self.train.folder), "val": str(self.val.folder)},
        }

    @classmethod
    def load(cls, folder: Path, source: dict[str, Any]) -> "Detection | None":
        """What ``save`` wrote, if it was of files with this fingerprint; else None."""
        try:
            record = json.loads((folder / "checked.json").read_text(encoding="utf-8"))
            contents = [json.loads((folder / f"{s}.json").read_text("utf-8")) for s in SPLITS]
        except (OSError, ValueError):
            return None
        if {key: record.get(key) for key in source} != source:
            return None
        train, val = (
            Objects(
                record["folders"][split], Path(record["folders"][split]), *(c[k] for k in LISTS)
            )
            for split, c in zip(SPLITS, contents, strict=True)
        )
        classes = [category["name"] for category in train.categories]
        said = ["own data: unchanged since they were checked"]
        return cls(train, val, classes, Findings(), said, source)

    def check_outlines(self) -> None:
        """Add a problem where a model with masks lacks outlines."""
        for objects in (self.train, self.val):
            lacking = objects.without_outline()
            count = sum(not note["iscrowd"] for note in objects.annotations)
            if lacking:
                names = {image["id"]: image["file_name"] for image in objects.images}
                every = len(lacking) == count
                self.findings.problem(
                    f"{objects.where} has boxes only, and the model has masks" if every
                    else f"{len(lacking)} of {count} objects have no outline, and the model has "
                    "masks",
                    "" if every else names[lacking[0]["image_id"]],
                    "own_data.masks=False trains the same config without its mask head (RetinaNet "
                    "and FCOS take boxes as they are)",
                )  # fmt: skip

    def save(self, folder: Path) -> dict[str, Path]:
        """Write train.json, val.json and checked.json; returns the paths of the splits."""
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "checked.json", self.record())
        paths = {}
        for split, objects in (("train", self.train), ("val", self.val)):
            paths[split] = folder / f"{split}.json"
            write_json(paths[split], objects.json(), indent=None)
        return paths


def read_detection(
    settings: dict[str, Any], *, exif: str = "auto", check: bool = True
) -> Detection:
    """A data set as a user names it.

    Args:
        settings: ``folder`` (with its ``format``, if it is not to be guessed), or the four PATHS,
            which win.
        exif: See ``coco.normalise``.
        check: Open the pictures' headers, compare the splits.

    Raises:
        InputError: Files are missing or unreadable, or no format is recognised.
    """
    findings = Findings()
    given = {key: settings[key] for key in PATHS if settings.get(key)}
    if given and len(given) < len(PATHS):
        missing = ", ".join(key for key in PATHS if key not in given)
        raise InputError(f"own data need all four paths, missing: {missing}")
    if given:
        for key in ("train_images", "val_images"):
            if not Path(given[key]).is_dir():
                raise InputError(f"no image folder {given[key]}")
        for key in ("train_json", "val_json"):
            if not Path(given[key]).is_file():
                raise InputError(f"no annotation file {given[key]}")
        raw = {
            split: read_coco(Path(given[f"{split}_json"]), Path(given[f"{split}_images"]), findings)
            for split in ("train", "val")
        }
        said: list[str] = []
    else:
        found, said = recognise(Path(settings["folder"]), findings, settings.get("format", ""))
        raw = {split: labels[0] for split, labels in found.items() if labels}
        for split, labels in found.items():
            if len(labels) > 1:
                names = ", ".join(one.where for one in labels)
                findings.problem(
                    f"several files for {split}", names,
                    "name one: own_data.train_json=, train_images=, val_json=, val_images=",
                )  # fmt: skip
    if findings.problems and not raw["train"].images:
        findings.stop_on_problems()
    train = normalise(raw["train"], findings, exif, check)
    if "val" in raw:
        val = normalise(raw["val"], findings, exif, check)
    else:
        chosen, rule = split_off(
            dict(zip((image["id"] for image in train.images), train.paths(), strict=True))
        )
        said.append(rule)
        if not chosen:
            findings.problem("one picture cannot be split", train.where, "add more")
        val = train.subset(chosen)
        train = train.subset({image["id"] for image in train.images} - chosen)
    classes = unify(train, val, findings)
    if check:
        find_overlap(train.paths(), val.paths(), findings, train.marks | val.marks)
        _note_unused(train, val, said, findings)
    return Detection(train, val, classes, findings, said)


def recognise(
    folder: Path, findings: Findings, kind: str = ""
) -> tuple[dict[str, list[Labelled]], list[str]]:
    """Labels by split of a folder in any of FORMATS, and what it was taken for.

    Raises:
        InputError: It is in none of them.
    """
    if not folder.is_dir():
        raise InputError(f"no folder {folder}")
    for name, find in FORMATS.items():
        if kind and kind not in name.lower():
            continue
        own = Findings()
        found = find(folder, own)
        if not found and not own.problems:
            continue
        findings.extend(own)
        if not found:
            findings.stop_on_problems()
        splits, more = assign(found)
        said = [f"{folder} is taken for {name}"]
        said += [
            f"{split}: {len(one.images)} pictures of {one.where}"
            for split, labels in splits.items()
            for one in labels
        ]
        if more:
            said.append(more)
        return {s: list(labels) for s, labels in splits.items() if labels}, said
    raise InputError(
        f"{folder} holds no labels that are known: a COCO json, YOLO with data.yaml or "
        "classes.txt, Pascal VOC's xml files, or LabelMe's json files"
    )


def _note_unused(train: Objects, val: Objects, said: list[str], findings: Findings) -> None:
    """Name pictures that lie beside those used and that no label names."""
    used = {path.resolve() for path in (*train.paths(), *val.paths())}
    if said and any("is taken for YOLO" in line for line in said):
        return
    for folder in {path.parent for path in used}:
        for path in sorted(folder.iterdir()):
            if is_picture(path) and path.resolve() not in used:
                findings.note("pictures that no label names", path, "not used")
