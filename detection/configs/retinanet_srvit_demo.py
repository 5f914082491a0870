"""RetinaNet on the scenes of coins, see mask_rcnn_srvit_demo."""

from .common.other_detectors import to_retinanet, without_masks
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
model = to_retinanet(model)
# A coin is 25 to 80 pixels wide.
model.anchor_generator.sizes = [[24], [40], [56], [80], [112]]
model.head.num_anchors = 3
train.output_dir = "output/retinanet_demo"
