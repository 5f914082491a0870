"""Pictures and masks for MMSegmentation: read and checked by own_data, resumed exactly."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.config import ConfigDict
from mmengine.dist import get_dist_info
from mmseg.datasets import ADE20KDataset, BaseSegDataset
from mmseg.registry import DATA_SAMPLERS, DATASETS, TRANSFORMS

from srvit_backbone.errors import InputError
from srvit_backbone.own_data.mask_classes import IGNORED, MaskClasses
from srvit_backbone.own_data.mask_folders import Pair
from srvit_backbone.own_data.masks import read_mask
from srvit_backbone.own_data.pictures import read_image
from srvit_backbone.own_data.segmentation import Segmentation, read_segmentation
from srvit_backbone.training.stream import StreamSampler, seeded

# What a runner has read and checked before it built anything, for the data sets it builds then.
_CHECKED: dict[str, Segmentation] = {}


def classes_of(settings: dict[str, Any]) -> MaskClasses:
    """What the masks of a data set's config mean.

    Raises:
        InputError: Neither ``seg_classes`` nor ``metainfo.classes`` names classes.
    """
    if settings.get("seg_classes"):
        return MaskClasses.read(settings["seg_classes"])
    names = list((settings.get("metainfo") or {}).get("classes") or ())
    if settings.get("type") == "CheckedADE20KDataset":
        return _ade20k(names)
    if not names:
        raise InputError("the data set names no classes: set SEG_CLASSES, or metainfo.classes")
    if settings.get("reduce_zero_label"):
        return MaskClasses.of_names(names, first=1, ignore=(0, IGNORED))
    return MaskClasses.of_names(names)


def _ade20k(names: list[str]) -> MaskClasses:
    """ADE20K's ids count from 1, and 0 is no label; of some classes only, all others are none."""
    every = ADE20KDataset.METAINFO["classes"]
    names = names or list(every)
    ids = {0: IGNORED, IGNORED: IGNORED}
    for number, name in enumerate(every, 1):
        ids[number] = names.index(name) if name in names else IGNORED
    return MaskClasses(tuple(names), ids, {}, "ADE20K")


def check_data(datasets: dict[str, ConfigDict]) -> Segmentation:
    """Read and check the data sets of a config.

    Args:
        datasets: By split, "train" and "val".

    Raises:
        InputError: Data are missing, or there is a problem with them.
    """
    settings = next(iter(datasets.values()))
    root = settings.get("data_root") or ""
    folders = None
    if all(own.get("data_prefix") for own in datasets.values()):
        folders = {
            split: (
                Path(own.get("data_root") or "", own.data_prefix["img_path"]),
                Path(own.get("data_root") or "", own.data_prefix["seg_map_path"]),
            )
            for split, own in datasets.items()
        }
    data = read_segmentation(
        Path(root),
        classes_of(settings),
        folders,
        exif=settings.get("exif", "auto"),
        check=settings.get("check", True),
        only=next(iter(datasets)) if len(datasets) == 1 else "",
    )
    data.findings.stop_on_problems()
    return data


def keep_checked(datasets: dict[str, ConfigDict], data: Segmentation) -> None:
    """What was read of these data sets, for when they are built; replaces what was kept before."""
    _CHECKED.clear()
    _CHECKED.update({_key(settings): data for settings in datasets.values()})


def _key(settings: Any) -> str:
    """Everything that decides how a data set is read, defaults filled in."""
    filled = {"exif": "auto", "check": True, **settings}
    names = (
        "type", "data_root", "data_prefix", "seg_classes", "metainfo", "reduce_zero_label",
        "exif", "check",
    )  # fmt: skip
    return repr([filled.get(name) or False for name in names])


class _Own(BaseSegDataset):
    """What both data sets below do in place of mmseg's search for files."""

    pairs: list[Pair]
    mask_classes: MaskClasses

    def _prepare(self, split: str, settings: dict[str, Any]) -> None:
        data = _CHECKED.get(_key(settings))
        if data is None:
            data = check_data({split: ConfigDict(settings)})
        self.pairs = list(data.train if split == "train" else data.val)
        self.mask_classes = data.classes
        self.record = {
            "taken for": data.said,
            "findings": [str(finding) for finding in data.findings],
        }

    def load_data_list(self) -> list[dict[str, Any]]:
        """The pairs of picture and mask, as the transforms below take them."""
        return [
            {
                "img_path": str(pair.picture),
                "seg_map_path": str(pair.mask),
                "mask_turn": pair.turn,
                "seg_fields": [],
            }
            for pair in self.pairs
        ]

    def get_data_info(self, index: int) -> dict[str, Any]:
        """An entry of the list above, with what the values of its mask mean."""
        return {**super().get_data_info(index), "mask_classes": self.mask_classes}

    def places(self) -> list[str]:
        """Folders of the pictures and of the masks."""
        files = [path for pair in self.pairs for path in (pair.picture, pair.mask)]
        return sorted({os.path.dirname(path) for path in files})


@DATASETS.register_module()
class CheckedSegDataset(_Own):
    """Own pictures and masks.

    Args:
        data_root: The data set; without ``data_prefix`` its layout is recognised.
        split: "train" or "val", where the layout is recognised or split.
        seg_classes: Names of the ids from 0 on, or a file that gives each class its ids or
            colours (``MaskClasses.read``); else ``metainfo=dict(classes=[...])``.
        exif: "auto", "upright" or "stored": what masks of pictures turned by EXIF are of.
        check: Open headers and masks beforehand.
        reduce_zero_label: Ids count from 1, and 0 is no label.
        **settings: mmseg's.

    Raises:
        InputError: Data are missing or unusable.
    """

    def __init__(
        self,
        data_root: str = "",
        split: str = "train",
        seg_classes: str = "",
        exif: str = "auto",
        check: bool = True,
        reduce_zero_label: bool = False,
        metainfo: dict | None = None,
        data_prefix: dict | None = None,
        **settings: Any,
    ) -> None:
        own = {
            "type": type(self).__name__, "data_root": data_root, "seg_classes": seg_classes,
            "exif": exif, "check": check, "reduce_zero_label": reduce_zero_label,
            "metainfo": metainfo, "data_prefix": data_prefix,
        }  # fmt: skip
        self._prepare(split, own)
        metainfo = {**(metainfo or {}), "classes": list(self.mask_classes.names)}
        super().__init__(metainfo=metainfo, **settings)
        self.label_map = None  # masks come as trained ids

    def __getitem__(self, key: int | tuple[int, int]) -> Any:
        """A picture by its index, or by StreamSampler's (position, index)."""
        if isinstance(key, int | np.integer):
            return super().__getitem__(key)
        position, index = key
        with seeded(self.stream_seed, position):
            return super().__getitem__(index)

    stream_seed = 0


@DATASETS.register_module()
class CheckedADE20KDataset(CheckedSegDataset):
    """ADE20K: 150 classes, ids from 1, 0 for no label."""

    METAINFO = ADE20KDataset.METAINFO


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
class LoadPicture(BaseTransform):
    """Read a picture as all of this package does; replaces LoadImageFromFile."""

    def transform(self, results: dict) -> dict:
        """Adds ``img`` (H, W, 3) in BGR, as mmseg has it, and its size."""
        image = read_image(results["img_path"])
        results["img"] = np.ascontiguousarray(image[:, :, ::-1])
        results["img_shape"] = results["ori_shape"] = image.shape[:2]
        return results


@TRANSFORMS.register_module()
class LoadMask(BaseTransform):
    """Read a mask as trained ids; replaces LoadAnnotations and its ``reduce_zero_label``."""

    def transform(self, results: dict) -> dict:
        """Adds ``gt_seg_map`` (H, W); nothing where there is no mask, as in inference.

        Raises:
            InputError: The mask is of another size than its picture.
        """
        path = results.get("seg_map_path")
        if path is None:
            return results
        mask = read_mask(path, results["mask_classes"], results.get("mask_turn", 1))
        if mask.shape != tuple(results["ori_shape"]):
            height, width = results["ori_shape"]
            raise InputError(
                f"{path} is {mask.shape[1]} x {mask.shape[0]} pixels, "
                f"its picture {width} x {height}"
            )
        results["gt_seg_map"] = mask
        results["seg_fields"].append("gt_seg_map")
        return results


def without_loading(pipeline: Sequence[dict]) -> list[dict]:
    """A test pipeline behind its reading of files."""
    return [step for step in pipeline if step["type"] not in ("LoadPicture", "LoadMask")]
