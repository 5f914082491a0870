"""Training samples of a data set as a recipe makes them, drawn: in every framework."""

import os
from pathlib import Path

import torch.distributed as dist
from PIL import Image

from srvit_backbone.own_data.pictures import find_pictures

SAMPLES = 12


def coco_sheet(config_file: str, own_data: dict[str, str]) -> Image.Image:
    """Samples with their boxes, masks and classes.

    Args:
        config_file: A detector's.
        own_data: The four paths of its ``own_data``.

    Raises:
        InputError: Config or data cannot be used.
    """
    from srvit_backbone.detectron2.config import load_config, prepare_data
    from srvit_backbone.detectron2.samples import sample_sheet

    config = load_config(config_file, [])
    config.own_data.update(own_data)
    prepare_data(config)
    return sample_sheet(config, SAMPLES)


def masks_sheet(
    config_file: str, data: Path, images: str, masks: str, classes: list[str]
) -> Image.Image:
    """Samples with their masks over them.

    Args:
        config_file: A segmentor's.
        data: Folder of the data set.
        images: Folder in it of the training pictures.
        masks: Folder in it of the training masks.
        classes: Names of the ids from 0 on.

    Raises:
        InputError: Config or data cannot be used.
    """
    from mmengine.config import Config

    from srvit_backbone.openmmlab.samples import sample_sheet

    os.environ.setdefault("SEG_CLASSES", ",".join(classes))
    dataset = (config := Config.fromfile(config_file)).train_dataloader.dataset
    dataset.update(data_root=str(data), data_prefix={"img_path": images, "seg_map_path": masks})
    dataset.img_suffix = find_pictures([str(data / images)])[0].suffix
    return sample_sheet(config, SAMPLES)


def classes_sheet(recipe_name: str, recipes: Path, data: Path) -> Image.Image:
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
