"""Normalised copies of data sets; the sources are never touched."""

import shutil
from pathlib import Path

from PIL import Image

from srvit_backbone.files import write_json
from srvit_backbone.own_data.classification import Classification
from srvit_backbone.own_data.detection import SPLITS, Detection
from srvit_backbone.own_data.headers import read_header
from srvit_backbone.own_data.masks import read_mask
from srvit_backbone.own_data.pictures import read_image
from srvit_backbone.own_data.segmentation import Segmentation

# Suffixes and modes that every program reads alike; all else becomes an upright 8-bit PNG.
PLAIN_SUFFIXES = (".jpg", ".jpeg", ".png")
PLAIN_MODES = ("RGB", "L")


class _Folder:
    """A folder that takes copies of pictures, each under a name of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stems: set[str] = set()

    def add(self, picture: Path) -> Path:
        """Copy a picture; returns its new path."""
        self.folder.mkdir(parents=True, exist_ok=True)
        stem, number = picture.stem, 1
        while stem.lower() in self.stems:
            number += 1
            stem = f"{picture.stem}-{number}"
        self.stems.add(stem.lower())
        header = read_header(picture)
        plain = header.orientation == 1 and header.mode in PLAIN_MODES
        if plain and picture.suffix.lower() in PLAIN_SUFFIXES:
            target = self.folder / f"{stem}{picture.suffix.lower()}"
            shutil.copyfile(picture, target)
        else:
            target = self.folder / f"{stem}.png"
            Image.fromarray(read_image(picture)).save(target)
        return target


def write_detection(data: Detection, folder: Path) -> None:
    """As COCO: train.json with train/, val.json with val/."""
    for split in SPLITS:
        objects = getattr(data, split)
        copies = _Folder(folder / split)
        images = [
            {**image, "file_name": copies.add(path).name}
            for image, path in zip(objects.images, objects.paths(), strict=True)
        ]
        write_json(folder / f"{split}.json", {**objects.json(), "images": images}, indent=None)


def write_segmentation(data: Segmentation, folder: Path) -> None:
    """As ADE20K's folders, masks with ids from 0 in the order of the classes, 255 for no label."""
    for pairs, split in ((data.train, "training"), (data.val, "validation")):
        copies = _Folder(folder / "images" / split)
        masks = folder / "annotations" / split
        masks.mkdir(parents=True)
        for pair in pairs:
            target = copies.add(pair.picture)
            ids = read_mask(pair.mask, data.classes, pair.turn)
            Image.fromarray(ids).save(masks / f"{target.stem}.png")
    (folder / "classes.txt").write_text("\n".join(data.classes.names) + "\n", encoding="utf-8")


def write_classification(data: Classification, folder: Path) -> None:
    """train/ and val/ with a folder a class."""
    for samples, split in ((data.train, "train"), (data.val, "val")):
        copies = [_Folder(folder / split / name) for name in data.classes]
        for path, label in samples:
            copies[label].add(path)
