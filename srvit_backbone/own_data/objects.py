"""Pictures with labelled objects, normalised: what every detector is trained and evaluated on."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srvit_backbone.own_data.findings import Findings

Category = dict[str, Any]


@dataclass
class Labelled:
    """Labels in COCO's form, as a file or a folder of some format has them.

    Attributes:
        where: What messages call it.
        folder: Of the pictures.
        images: COCO's.
        annotations: COCO's.
        categories: COCO's.
        turned: "upright" where the format's labels are of the picture as it is seen, "" where the
            sizes have to tell.
        shares: Coordinates are shares of the picture's width and height, as YOLO's are.
    """

    where: str
    folder: Path
    images: list[dict[str, Any]] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)
    categories: list[Category] = field(default_factory=list)
    turned: str = ""
    shares: bool = False


@dataclass
class Objects:
    """Normalised labels: ids from 1, sizes and coordinates of the upright picture, all numbers.

    Attributes:
        where: What messages call it.
        folder: Of the pictures.
        images: ``id``, ``file_name`` (from the folder), ``width``, ``height``.
        annotations: ``id``, ``image_id``, ``category_id``, ``bbox`` ([x, y, width, height]),
            ``area``, ``iscrowd``, and ``segmentation`` (polygons or RLE) where there is an outline.
        categories: ``id`` and ``name``, in the order of the classes.
        marks: Of the pictures' headers, where they were read.
    """

    where: str
    folder: Path
    images: list[dict[str, Any]]
    annotations: list[dict[str, Any]]
    categories: list[Category]
    marks: dict[Path, int] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """In COCO's form."""
        return {
            "info": {"description": "normalised by srvit-backbone"},
            "images": self.images,
            "annotations": self.annotations,
            "categories": self.categories,
        }

    def paths(self) -> list[Path]:
        """Of the pictures."""
        return [self.folder / image["file_name"] for image in self.images]

    def without_outline(self) -> list[dict[str, Any]]:
        """Objects, crowds apart, that have a box only."""
        return [n for n in self.annotations if not n["iscrowd"] and "segmentation" not in n]

    def subset(self, images: set[int]) -> "Objects":
        """Some of the pictures by id, with what they show."""
        return Objects(
            self.where,
            self.folder,
            [image for image in self.images if image["id"] in images],
            [note for note in self.annotations if note["image_id"] in images],
            self.categories,
            self.marks,
        )


def unify(train: Objects, val: Objects, findings: Findings) -> list[str]:
    """Give both splits the training split's classes, by name; returns the names in order."""
    names = [category["name"] for category in train.categories]
    ids = {name: number for number, name in enumerate(names, 1)}
    train.categories = [{"id": number, "name": name} for name, number in ids.items()]
    renamed = {c["id"]: c["name"] for c in val.categories}
    used = Counter(note["category_id"] for note in val.annotations)
    for number, name in renamed.items():
        if name not in ids and used[number]:
            findings.problem(
                f"objects of class {name!r} are in the validation labels only",
                val.where,
                f"training has {', '.join(names[:10])}: give it pictures of that class, or remove "
                "it from the validation labels",
            )
        elif name not in ids:
            findings.note(f"class {name!r} is listed for validation only", val.where, "left out")
    val.annotations = [
        {**note, "category_id": ids[renamed[note["category_id"]]]}
        for note in val.annotations
        if renamed[note["category_id"]] in ids
    ]
    val.categories = train.categories
    seen = Counter(note["category_id"] for note in train.annotations)
    for name, number in ids.items():
        if not seen[number]:
            findings.note("classes without any object in training", name, "never learnt")
    return names
