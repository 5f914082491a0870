"""Data of a recipe, by timm's readers, transforms, samplers and mixup."""

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from omegaconf import DictConfig
from timm.data import Mixup, auto_augment, create_loader
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

from srvit_backbone.pretrain.images import open_splits


def _posterize(image: Any, bits_to_keep: int, **settings: Any) -> Any:
    # At its highest magnitude timm asks for 0 bits, which recent Pillow refuses.
    return auto_augment.posterize(image, max(1, bits_to_keep), **settings)


for _name in ("Posterize", "PosterizeIncreasing", "PosterizeOriginal"):
    auto_augment.NAME_TO_OP[_name] = _posterize


@dataclass
class Data:
    """Loaders of both splits, mixup if the recipe has it, classes, and what the data are."""

    train: Any
    val: Any
    val_images: int
    mixup: Mixup | None
    classes: list[str]
    understood: list[str] = field(default_factory=list)

    @property
    def num_classes(self) -> int:
        """Of the classifier."""
        return len(self.classes)


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
    training, val, classes, understood = open_splits(recipe, train)
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
        return Data(None, val_loader, len(val), None, classes, understood)

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
    return Data(train_loader, val_loader, len(val), mixup, classes, understood)


def own_share(images: int) -> int:
    """Validation images of this process: timm's sampler repeats some to fill the last batch."""
    return len(range(dist.get_rank(), images, dist.get_world_size()))
