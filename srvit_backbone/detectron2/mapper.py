"""From a picture's dict to a detector's input."""

import copy
from typing import Any

import numpy as np
import torch
from detectron2.data import DatasetMapper, detection_utils
from detectron2.data import transforms as T
from detectron2.structures import BitMasks, Boxes, Instances

from srvit_backbone.own_data.pictures import read_image


class Mapper(DatasetMapper):
    """Detectron2's DatasetMapper with this package's picture reader, that keeps empty pictures.

    A picture without objects, or with crowds only, trains as a negative: its instances are none,
    but of the form that heads ask for. Detectron2's own has no ``gt_masks`` there.

    Args: see DatasetMapper, of which boxes and masks are supported.
    """

    def __call__(self, dataset_dict: dict[str, Any]) -> dict[str, Any]:
        """Detectron2's dict -> the same with "image" (3, H, W), and in training "instances".

        Raises:
            InputError: The picture cannot be opened.
            SizeMismatchError: It is of another size than the dict says.
        """
        entry = copy.deepcopy(dataset_dict)
        image = read_image(entry["file_name"])
        detection_utils.check_image_size(entry, image)
        if self.image_format == "BGR":
            image = image[:, :, ::-1]
        augmented = T.AugInput(image)
        transforms = self.augmentations(augmented)
        pixels = np.ascontiguousarray(augmented.image.transpose(2, 0, 1))
        entry["image"] = torch.as_tensor(pixels)
        if not self.is_train:
            entry.pop("annotations", None)
            return entry
        self._transform_annotations(entry, transforms, augmented.image.shape[:2])
        return entry

    def _transform_annotations(
        self, dataset_dict: dict[str, Any], transforms: T.Transform, image_shape: tuple[int, int]
    ) -> None:
        annotations = dataset_dict.setdefault("annotations", [])
        if any(not note.get("iscrowd", 0) for note in annotations):
            super()._transform_annotations(dataset_dict, transforms, image_shape)
            return
        del dataset_dict["annotations"]
        none = Instances(image_shape, gt_boxes=Boxes(torch.zeros(0, 4)))
        none.gt_classes = torch.zeros(0, dtype=torch.int64)
        if self.use_instance_mask:
            none.gt_masks = BitMasks(torch.zeros(0, *image_shape, dtype=torch.bool))
        dataset_dict["instances"] = none
