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
model.anchor_generator.sizes = [[24, 34], [48, 68], [96, 136], [192, 272], [384, 544]]
model.head.num_anchors = 6
# Without, a head that starts from scratch learns little in so few iterations.
model.head.norm = "LN"
train.output_dir = "output/retinanet_demo"
