"""The pictures of both splits: of class folders by own_data, of tar files and hubs by timm."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.distributed as dist
from omegaconf import DictConfig
from PIL import Image
from timm.data import ImageDataset, create_dataset
from torch.utils.data import Dataset

from srvit_backbone.errors import InputError
from srvit_backbone.own_data.classification import Samples, read_classification
from srvit_backbone.own_data.pictures import read_image

logger = logging.getLogger(__name__)


class ClassFolders(Dataset):
    """Pictures of class folders, by the one picture reader.

    Args:
        samples: Pictures and their labels.
        root: The data set's folder.
        skip_damaged: Take the next picture, with a warning, for one that cannot be opened.
    """

    def __init__(self, samples: Samples, root: str, skip_damaged: bool = False) -> None:
        self.samples, self.root, self.skip_damaged = samples, root, skip_damaged
        self.transform: Callable[[Image.Image], Any] | None = None  # timm's loader sets it

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Picture, transformed, and label.

        Raises:
            InputError: The picture cannot be opened.
        """
        path, label = self.samples[index]
        try:
            picture = Image.fromarray(read_image(path))
        except InputError as error:
            if not self.skip_damaged:
                raise InputError(
                    f"{error}: mend or remove it, or set skip_corrupt=true to skip such files"
                ) from None
            logger.warning("%s: skipped", error)
            return self[(index + 1) % len(self)]
        return picture if self.transform is None else self.transform(picture), label


class StrictImages(ImageDataset):
    """timm's dataset, which goes on to the next picture where one cannot be opened, but strict."""

    def __getitem__(self, index: int) -> Any:
        """Picture and label.

        Raises:
            InputError: The file is no picture, or damaged.
        """
        self._max_retries = 1
        try:
            return super().__getitem__(index)
        except (RuntimeError, OSError) as error:
            name = self.filename(index, absolute=True)
            raise InputError(
                f"{name} cannot be opened as a picture ({error}): mend or remove it, or set "
                "skip_corrupt=true to skip such files"
            ) from error


def open_splits(recipe: DictConfig, train: bool) -> tuple[Any, Any, list[str], list[str]]:
    """Data sets of training (None if not wanted) and validation, classes, what is to be said.

    Raises:
        InputError: The data are missing, or there is a problem with them.
    """
    tars = [os.path.join(recipe.data, f"{split}.tar") for split in ("train", "val")]
    if recipe.dataset or os.path.isfile(recipe.data) or any(map(os.path.isfile, tars)):
        val = _open_timm(recipe, "validation", is_training=False)
        classes = class_names(val)
        training = _open_timm(recipe, "train", is_training=True) if train else None
        if training is not None and class_names(training) != classes:
            raise InputError(
                f"the classes of {recipe.data}'s training and validation split differ: "
                f"{len(class_names(training))} and {len(classes)}"
            )
        return training, val, classes, []
    # One process looks at the pictures; where damaged ones are left out, all have to know which.
    check = recipe.check and (dist.get_rank() == 0 or recipe.skip_corrupt)
    data = read_classification(Path(recipe.data), check, recipe.skip_corrupt)
    data.findings.stop_on_problems()
    training, val = (
        ClassFolders(samples, recipe.data, recipe.skip_corrupt)
        for samples in (data.train, data.val)
    )
    said = [*data.said, *map(str, data.findings)]
    return training if train else None, val, data.classes, said


def _open_timm(recipe: DictConfig, split: str, is_training: bool) -> Any:
    if not recipe.dataset and os.path.isfile(recipe.data):
        raise InputError(
            f"{recipe.data} is one file: data=FOLDER needs both splits, e.g. train.tar and val.tar"
        )
    tar = os.path.join(recipe.data, "train.tar" if is_training else "val.tar")
    try:
        dataset = create_dataset(
            recipe.dataset,
            root=tar if os.path.isfile(tar) else recipe.data,
            split=split,
            is_training=is_training,
            seed=recipe.seed,
        )
        size = len(dataset)
    except (RuntimeError, OSError, AssertionError, ValueError) as error:
        raise InputError(f"cannot read the {split} split of {recipe.data}: {error}") from error
    if size == 0:
        raise InputError(f"the {split} split of {recipe.data} is empty")
    if isinstance(dataset, ImageDataset) and not recipe.skip_corrupt:
        return StrictImages(recipe.data, reader=dataset.reader)
    return dataset


def class_names(dataset: Any) -> list[str]:
    """Names of a timm data set's classes, by label."""
    reader = dataset.reader  # of folders or of a tar file
    index = getattr(reader, "class_to_idx", None) or getattr(reader, "class_name_to_idx", None)
    if not index:
        raise InputError("the data set's reader does not name its classes")
    return sorted(index, key=index.get)
