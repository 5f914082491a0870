"""Data for Detectron2: own COCO-format data sets, checks before training, a resumable loader."""

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from detectron2.data import DatasetCatalog, DatasetFromList, MetadataCatalog
from detectron2.data.build import trivial_batch_collator
from detectron2.data.datasets import register_coco_instances
from detectron2.data.datasets.builtin import _PREDEFINED_SPLITS_COCO
from detectron2.utils import comm
from torch.utils.data import DataLoader, Dataset

from srvit_backbone.errors import InputError
from srvit_backbone.run_record import fingerprint
from srvit_backbone.stream import StreamSampler, seeded

logger = logging.getLogger(__name__)

OWN_TRAIN, OWN_VAL = "own_train", "own_val"
COCO_TREE = (
    "coco/annotations/instances_train2017.json, coco/annotations/instances_val2017.json, "
    "coco/train2017/*.jpg, coco/val2017/*.jpg"
)


# --- data sets ----------------------------------------------------------------------


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


# --- the training stream ------------------------------------------------------------


class SeededSamples(Dataset):
    """Images by (position, index), the randomness of each drawn from (seed, position) alone.

    Args:
        dataset: The images' dicts.
        mapper: Dict to model input; its randomness may be NumPy's, Python's or torch's.
        seed: Of the whole stream.
    """

    def __init__(self, dataset: Dataset, mapper: Callable[[dict], dict | None], seed: int) -> None:
        self.dataset, self.mapper, self.seed = dataset, mapper, seed

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, key: tuple[int, int]) -> dict[str, Any]:
        position, index = key
        image = self.dataset[index]
        with seeded(self.seed, position):
            try:
                return self.mapper(image)
            except Exception as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise InputError(f"{image['file_name']} cannot be used: {reason}") from error


def build_train_loader(
    dataset: list[dict],
    *,
    mapper: Callable[[dict], dict | None],
    total_batch_size: int,
    num_workers: int = 0,
    seed: int = 0,
    start_iter: int = 0,
) -> DataLoader:
    """Endless batches (lists of dicts) for training, the same after any interruption.

    Args:
        dataset: Detectron2's dicts of images, e.g. from ``get_detection_dataset_dicts``.
        mapper: Detectron2's DatasetMapper, or any callable like it.
        total_batch_size: Images a step over all processes.
        num_workers: Loading processes of each process; they do not change what is loaded.
        seed: Of the order and the augmentations.
        start_iter: Iterations already done.

    Raises:
        InputError: The batch cannot be divided by the number of processes.
    """
    processes = comm.get_world_size()
    if total_batch_size < 1 or total_batch_size % processes:
        raise InputError(
            f"dataloader.train.total_batch_size={total_batch_size} must be a multiple of the "
            f"{processes} processes"
        )
    cleaned = [_without_degenerate_polygons(image) for image in dataset]
    samples = SeededSamples(DatasetFromList(cleaned, copy=False), mapper, seed)
    return DataLoader(
        samples,
        batch_size=total_batch_size // processes,
        sampler=StreamSampler(
            len(samples), seed, start_iter * total_batch_size, comm.get_rank(), processes
        ),
        num_workers=num_workers,
        collate_fn=trivial_batch_collator,
        drop_last=True,
    )


def _without_degenerate_polygons(image: dict) -> dict:
    """Drop polygons of fewer than 3 points, on which cropping stops, and objects of only such."""
    if "annotations" not in image:
        return image
    kept = []
    for note in image["annotations"]:
        outline = note.get("segmentation")
        if isinstance(outline, list):
            polygons = [polygon for polygon in outline if len(polygon) >= 6]
            if outline and not polygons:
                logger.warning("%s: an object without area is left out", image["file_name"])
                continue
            note = {**note, "segmentation": polygons}  # noqa: PLW2901
        kept.append(note)
    return {**image, "annotations": kept}
