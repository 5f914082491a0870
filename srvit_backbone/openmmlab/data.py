"""Image + mask folders for MMSegmentation: checked before and while training, resumed exactly."""

import os
from typing import Any

import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.dist import get_dist_info
from mmseg.datasets import ADE20KDataset, BaseSegDataset
from mmseg.registry import DATA_SAMPLERS, DATASETS, TRANSFORMS

from srvit_backbone.errors import InputError
from srvit_backbone.training.stream import StreamSampler, seeded


class _Checked:
    """What both data sets below add to mmseg's."""

    def load_data_list(self) -> list[dict]:
        """The pairs of image and mask, all of which are there.

        Raises:
            InputError: A folder is missing or empty, or images are without their mask.
        """
        images, masks = self.data_prefix.get("img_path"), self.data_prefix.get("seg_map_path")
        for folder in (images, masks):
            if not os.path.isdir(folder):
                raise InputError(f"no folder {folder}: set data_root to where the data set is")
        entries = super().load_data_list()
        if not entries:
            raise InputError(f"no images *{self.img_suffix} in {images}")
        missing = [e for e in entries if not os.path.isfile(e["seg_map_path"])]
        if missing:
            raise InputError(
                f"{len(missing)} of {len(entries)} images in {images} have no mask, the first "
                f"would be {missing[0]['seg_map_path']}"
            )
        return entries

    def __getitem__(self, key: int | tuple[int, int]) -> Any:
        """An image by its index, or by StreamSampler's (position, index)."""
        if isinstance(key, int | np.integer):
            return super().__getitem__(key)
        position, index = key
        with seeded(self.stream_seed, position):
            return super().__getitem__(index)

    stream_seed = 0


@DATASETS.register_module()
class CheckedSegDataset(_Checked, BaseSegDataset):
    """mmseg's BaseSegDataset, for own folders: ``metainfo=dict(classes=[...])`` names the classes.

    Masks hold class ids from 0, and 255 for what is not labelled; with ``reduce_zero_label=True``
    ids from 1, and 0 for what is not labelled.
    """


@DATASETS.register_module()
class CheckedADE20KDataset(_Checked, ADE20KDataset):
    """mmseg's ADE20K."""


@DATA_SAMPLERS.register_module()
class StreamSegSampler(StreamSampler):
    """StreamSampler in MMEngine's form; replaces InfiniteSampler.

    Args:
        dataset: One of the data sets above.
        seed: Of order and augmentations, 0 by default.
    """

    def __init__(self, dataset: Any, seed: int | None = None, **_: Any) -> None:
        rank, world_size = get_dist_info()
        super().__init__(len(dataset), seed or 0, rank=rank, world_size=world_size)
        dataset.stream_seed = self.seed

    def __len__(self) -> int:
        return self.size

    def set_epoch(self, epoch: int) -> None:
        """Nothing: the stream has epochs of its own."""


@TRANSFORMS.register_module()
class CheckMask(BaseTransform):
    """Stop at a mask of another size than its image, or with an id beyond the classes.

    Comes right behind loading.

    Args:
        num_classes: Number of classes; ids from 0 to this - 1, and 255, are allowed.
    """

    def __init__(self, num_classes: int) -> None:
        self.num_classes = num_classes

    def transform(self, results: dict) -> dict:
        """Check, and pass on."""
        image, mask = results["img"], results["gt_seg_map"]
        path = results["seg_map_path"]
        if image.shape[:2] != mask.shape:
            raise InputError(
                f"{path} is {mask.shape[1]}x{mask.shape[0]} pixels, its image "
                f"{image.shape[1]}x{image.shape[0]}"
            )
        labels = mask[mask != 255]
        if labels.size and labels.max() >= self.num_classes:
            raise InputError(
                f"{path} has class id {labels.max()}, but there are {self.num_classes} classes "
                "(ids from 0; with reduce_zero_label the ids of the file less 1)"
            )
        return results
