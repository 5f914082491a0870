"""Data sets for Detectron2: a user's own registered, Detectron2's checked to be there."""

import os
from pathlib import Path
from typing import Any

from detectron2.data import DatasetCatalog, MetadataCatalog
from detectron2.data.datasets.builtin import _PREDEFINED_SPLITS_COCO
from detectron2.structures import BoxMode

from srvit_backbone.errors import InputError
from srvit_backbone.own_data.detection import Detection
from srvit_backbone.own_data.objects import Objects
from srvit_backbone.training.run_record import fingerprint

OWN_TRAIN, OWN_VAL = "own_train", "own_val"
COCO_TREE = (
    "coco/annotations/instances_train2017.json, coco/annotations/instances_val2017.json, "
    "coco/train2017/*.jpg, coco/val2017/*.jpg"
)


def register_own_data(data: Detection, folder: Path) -> None:
    """Register both splits, as "own_train" and "own_val".

    Args:
        data: Normalised.
        folder: Where ``data.save`` has put, or will put, what evaluation reads.
    """
    for name, split in ((OWN_TRAIN, "train"), (OWN_VAL, "val")):
        objects = getattr(data, split)
        if name in DatasetCatalog.list():
            DatasetCatalog.remove(name)
            MetadataCatalog.remove(name)
        DatasetCatalog.register(name, lambda objects=objects: to_detectron2(objects))
        MetadataCatalog.get(name).set(
            json_file=str(folder / f"{split}.json"),
            image_root=str(objects.folder),
            evaluator_type="coco",
            thing_classes=data.classes,
            thing_dataset_id_to_contiguous_id={
                category["id"]: index for index, category in enumerate(objects.categories)
            },
        )


def to_detectron2(objects: Objects) -> list[dict[str, Any]]:
    """Normalised labels as Detectron2's dicts."""
    notes: dict[int, list[dict[str, Any]]] = {image["id"]: [] for image in objects.images}
    for note in objects.annotations:
        notes[note["image_id"]].append(
            {
                **{key: note[key] for key in ("bbox", "iscrowd", "segmentation") if key in note},
                "bbox_mode": BoxMode.XYWH_ABS,
                "category_id": note["category_id"] - 1,
            }
        )
    return [
        {
            "file_name": str(path),
            "image_id": image["id"],
            "width": image["width"],
            "height": image["height"],
            "annotations": notes[image["id"]],
        }
        for image, path in zip(objects.images, objects.paths(), strict=True)
    ]


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
