"""RetinaNet on SR-ViT-S (T = 3): the recipe of Mask R-CNN, another detector."""

from .common.other_detectors import to_retinanet, without_masks
from .mask_rcnn_srvit_s_t3 import (
    class_names,
    dataloader,
    lr_multiplier,
    model,
    optimizer,
    own_data,
    train,
)

dataloader = without_masks(dataloader, model.input_format)
model = to_retinanet(model)
train.output_dir = "output/retinanet_srvit_s_t3"
