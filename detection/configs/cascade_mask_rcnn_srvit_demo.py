"""Cascade Mask R-CNN on the scenes of coins, see mask_rcnn_srvit_demo."""

from .common.other_detectors import to_cascade
from .mask_rcnn_srvit_demo import (
    class_names,
    dataloader,
    lr_multiplier,
    model,
    optimizer,
    own_data,
    train,
)

model = to_cascade(model)
train.output_dir = "output/cascade_mask_rcnn_demo"
