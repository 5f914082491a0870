"""FCOS on the scenes of coins, see mask_rcnn_srvit_demo."""

from .common.other_detectors import to_fcos, without_masks
from .mask_rcnn_srvit_demo import (
    class_names,
    dataloader,
    lr_multiplier,
    model,
    optimizer,
    own_data,
    train,
)

dataloader = without_masks(dataloader, model.input_format)
model = to_fcos(model)
train.output_dir = "output/fcos_demo"
