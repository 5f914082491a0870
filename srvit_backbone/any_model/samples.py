"""A data set of any kind: checked, written anew, its training samples drawn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.distributed as dist
from PIL import Image

from srvit_backbone.any_model.open import config_folder
from srvit_backbone.own_data.classification import read_classification
from srvit_backbone.own_data.detection import PATHS, read_detection
from srvit_backbone.own_data.mask_classes import MaskClasses
from srvit_backbone.own_data.segmentation import read_segmentation
from srvit_backbone.own_data.write import (
    write_classification,
    write_detection,
    write_segmentation,
)

SAMPLES = 12


def objects_sheet(config_file: str, own_data: dict[str, Any]) -> Image.Image:
    """Samples with their boxes, masks and classes.

    Args:
        config_file: A detector's.
        own_data: What its ``own_data`` is to hold.

    Raises:
        InputError: Config or data cannot be used.
    """
    from srvit_backbone.detectron2.config import load_config, prepare_data, read_own_data
    from srvit_backbone.detectron2.samples import sample_sheet

    config = load_config(config_file, [])
    config.own_data.update(dict.fromkeys(PATHS, "") | own_data)
    prepare_data(config, data=read_own_data(config))
    return sample_sheet(config, SAMPLES)


def masks_sheet(config_file: str, data: str, classes: str, exif: str) -> Image.Image:
    """Samples with their masks over them.

    Args:
        config_file: A segmentor's.
        data: Folder of the data set.
        classes: Names of the ids from 0 on, or a file.
        exif: See ``read_segmentation``.

    Raises:
        InputError: Config or data cannot be used.
    """
    from mmengine.config import Config

    config = Config.fromfile(config_file)
    dataset = config.train_dataloader.dataset
    from srvit_backbone.openmmlab.samples import sample_sheet

    for key in ("data_prefix", "metainfo", "reduce_zero_label"):
        dataset.pop(key, None)
    dataset.update(
        type="CheckedSegDataset", data_root=data, split="train", seg_classes=classes, exif=exif
    )
    return sample_sheet(config, SAMPLES)


def classes_sheet(recipe_name: str, recipes: Path, data: str) -> Image.Image:
    """Samples over the names of their classes.

    Args:
        recipe_name: Of pretraining.
        recipes: Folder of the package's recipes.
        data: With train/ and val/.

    Raises:
        InputError: Recipe or data cannot be used.
    """
    from srvit_backbone.pretrain.processes import start_process_group
    from srvit_backbone.pretrain.recipe import load_recipe
    from srvit_backbone.pretrain.samples import sample_sheet

    recipe = load_recipe(recipes, [recipe_name], [f"data={data}"])
    start_process_group()
    try:
        return sample_sheet(recipe, SAMPLES)
    finally:
        dist.destroy_process_group()


def _own(args: Any) -> dict[str, Any]:
    return {"folder": args.data or "", **{key: getattr(args, key) for key in PATHS}}


# Kind of data set -> what tools/check_dataset.py does with its arguments.
CHECKS: dict[str, Callable[[Any], Any]] = {
    "objects": lambda args: read_detection(_own(args), exif=args.exif),
    "masks": lambda args: read_segmentation(
        Path(args.data), MaskClasses.read(args.classes), exif=args.exif
    ),
    "classes": lambda args: read_classification(Path(args.data)),
}
SHEETS: dict[str, Callable[[Any], Image.Image]] = {
    "objects": lambda args: objects_sheet(args.config, {**_own(args), "exif": args.exif}),
    "masks": lambda args: masks_sheet(args.config, args.data, args.classes, args.exif),
    "classes": lambda args: classes_sheet(args.config, config_folder("pretrained"), args.data),
}
WRITERS: dict[str, Callable[[Any, Path], None]] = {
    "objects": write_detection,
    "masks": write_segmentation,
    "classes": write_classification,
}
