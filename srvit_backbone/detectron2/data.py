"""Data sets for Detectron2: own ones registered, all of them checked before training."""

import json
import os
from pathlib import Path
from typing import Any

from detectron2.data import DatasetCatalog, MetadataCatalog
from detectron2.data.datasets import register_coco_instances
from detectron2.data.datasets.builtin import _PREDEFINED_SPLITS_COCO

from srvit_backbone.errors import InputError
from srvit_backbone.training.run_record import fingerprint

OWN_TRAIN, OWN_VAL = "own_train", "own_val"
COCO_TREE = (
    "coco/annotations/instances_train2017.json, coco/annotations/instances_val2017.json, "
    "coco/train2017/*.jpg, coco/val2017/*.jpg"
)


def register_own_data(
    train_json: str, train_images: str, val_json: str, val_images: str
) -> list[str]:
    """Register two COCO-format json files and their image folders as "own_train" and "own_val".

    Returns:
        The class names, in the order of the category ids.

    Raises:
        InputError: A file or folder is missing or empty, not COCO format, or the two do not agree.
    """
    splits = {OWN_TRAIN: (train_json, train_images), OWN_VAL: (val_json, val_images)}
    classes = [_check_coco(json_file, images) for json_file, images in splits.values()]
    if classes[0] != classes[1]:
        raise InputError(
            f"the classes of {train_json} and {val_json} differ: {classes[0]} and {classes[1]}"
        )
    for name, (json_file, images) in splits.items():
        if name in DatasetCatalog.list():
            DatasetCatalog.remove(name)
            MetadataCatalog.remove(name)
        register_coco_instances(name, {"thing_classes": classes[0]}, json_file, images)
    return classes[0]


def _check_coco(json_file: str, images: str) -> list[str]:
    if not os.path.isdir(images):
        raise InputError(f"no image folder {images}")
    try:
        content = json.loads(Path(json_file).read_text())
    except OSError:
        raise InputError(f"no annotation file {json_file}") from None
    except ValueError as error:
        raise InputError(f"{json_file} is not json: {error}") from None
    keys = ("images", "annotations", "categories")
    if not isinstance(content, dict) or any(key not in content for key in keys):
        raise InputError(f"{json_file} is not COCO format: it needs the keys {', '.join(keys)}")
    for key in keys:
        if not content[key]:
            raise InputError(f"{json_file} has no {key}")
    missing = [
        image["file_name"]
        for image in content["images"]
        if not os.path.isfile(os.path.join(images, image["file_name"]))
    ]
    if missing:
        raise InputError(
            f"{len(missing)} of {len(content['images'])} images of {json_file} are not in "
            f"{images}, the first is {missing[0]}"
        )
    names = {category["id"]: category["name"] for category in content["categories"]}
    unknown = {note["category_id"] for note in content["annotations"]} - names.keys()
    if unknown:
        raise InputError(f"{json_file} has annotations of unknown category ids {sorted(unknown)}")
    return [names[key] for key in sorted(names)]


def check_registered(name: str) -> None:
    """Raise InputError, with the expected tree, if files of a registered data set are missing."""
    if name not in DatasetCatalog.list():
        raise InputError(f"no data set is registered as {name!r}")
    for splits in _PREDEFINED_SPLITS_COCO.values():
        if name not in splits:
            continue
        root = os.getenv("DETECTRON2_DATASETS", "datasets")
        for path in reversed(splits[name]):
            if not os.path.exists(os.path.join(root, path)):
                raise InputError(
                    f"data set {name} is not there: no {os.path.join(root, path)}. "
                    f"Set DETECTRON2_DATASETS to the folder that holds {COCO_TREE}"
                )


def fingerprint_of(name: str) -> dict[str, Any]:
    """``run_record.fingerprint`` of a registered data set, empty if it is not of COCO's form."""
    data = MetadataCatalog.get(name)
    places = [folder] if (folder := data.get("image_root")) else []
    return fingerprint(*places, read=[json] if (json := data.get("json_file")) else [])
