"""Data of a recipe, by timm's readers, transforms, samplers and mixup."""

import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from omegaconf import DictConfig
from timm.data import ImageDataset, Mixup, auto_augment, create_dataset, create_loader
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

from srvit_backbone.errors import InputError


def _posterize(image: Any, bits_to_keep: int, **settings: Any) -> Any:
    # At its highest magnitude timm asks for 0 bits, which recent Pillow refuses.
    return auto_augment.posterize(image, max(1, bits_to_keep), **settings)


for _name in ("Posterize", "PosterizeIncreasing", "PosterizeOriginal"):
    auto_augment.NAME_TO_OP[_name] = _posterize


@dataclass
class Data:
    """Loaders of both splits, mixup if the recipe has it, and the number of classes."""

    train: Any
    val: Any
    val_images: int
    mixup: Mixup | None
    num_classes: int


def build_data(
    recipe: DictConfig, batch_size: int, device: torch.device, train: bool = True
) -> Data:
    """Data of a recipe; needs torch.distributed to be initialised, also with one process.

    Args:
        recipe: A resolved recipe.
        batch_size: Images of one process at once.
        device: Where batches go.
        train: False leaves out the training split, for evaluation only.

    Raises:
        InputError: The data are missing, or the classes of the splits differ.
    """
    val = _open(recipe, "validation", is_training=False)
    classes = class_names(val)
    common = {
        "input_size": (3, recipe.img_size, recipe.img_size),
        "batch_size": batch_size,
        "interpolation": recipe.interpolation,
        "mean": IMAGENET_DEFAULT_MEAN,
        "std": IMAGENET_DEFAULT_STD,
        "num_workers": recipe.num_workers,
        "distributed": True,
        "device": device,
        # timm's prefetcher normalises and erases on the GPU; on the CPU it would only add copies.
        "use_prefetcher": device.type == "cuda",
        "pin_memory": device.type == "cuda",
        # Workers start anew each epoch, seeded by it: so an epoch is the same after a resume.
        "persistent_workers": False,
    }
    val_loader = create_loader(val, crop_pct=recipe.crop_pct, **common)
    if not train:
        return Data(None, val_loader, len(val), None, len(classes))

    training = _open(recipe, "train", is_training=True)
    if class_names(training) != classes:
        raise InputError(
            f"the classes of {recipe.data}'s training and validation split differ: "
            f"{len(class_names(training))} and {len(classes)}"
        )
    train_loader = create_loader(
        training,
        is_training=True,
        scale=tuple(recipe.scale),
        hflip=recipe.hflip,
        color_jitter=recipe.color_jitter or None,
        auto_augment=recipe.auto_augment,
        re_prob=recipe.random_erasing,
        re_mode="pixel",
        num_aug_repeats=recipe.repeated_augment,
        **common,
    )
    mixup = None
    if recipe.mixup or recipe.cutmix:
        mixup = Mixup(
            mixup_alpha=recipe.mixup,
            cutmix_alpha=recipe.cutmix,
            switch_prob=recipe.mixup_switch,
            label_smoothing=recipe.label_smoothing,
            num_classes=len(classes),
        )
    return Data(train_loader, val_loader, len(val), mixup, len(classes))


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


def own_share(images: int) -> int:
    """Validation images of this process: timm's sampler repeats some to fill the last batch."""
    return len(range(dist.get_rank(), images, dist.get_world_size()))


def _open(recipe: DictConfig, split: str, is_training: bool) -> Any:
    if not recipe.dataset and not os.path.exists(recipe.data):
        raise InputError(
            f"no data at {recipe.data}: data=FOLDER has train/ and val/, or train.tar and val.tar, "
            "with a folder a class in each"
        )
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
