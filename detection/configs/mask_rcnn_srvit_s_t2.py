from .common.mask_rcnn_srvit import (
    class_names,
    dataloader,
    lr_multiplier,
    model,
    optimizer,
    own_data,
    train,
)

model.backbone.net.variant = "srvit_s_t2"
