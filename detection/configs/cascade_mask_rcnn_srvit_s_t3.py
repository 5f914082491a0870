"""Cascade Mask R-CNN on SR-ViT-S (T = 3): the recipe of Mask R-CNN, another detector."""

from .common.other_detectors import to_cascade
from .mask_rcnn_srvit_s_t3 import (
    class_names,
    dataloader,
    lr_multiplier,
    model,
    optimizer,
    own_data,
    train,
)

model = to_cascade(model)
train.output_dir = "output/cascade_mask_rcnn_srvit_s_t3"
