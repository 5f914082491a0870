"""A small detector on scenes of real coins: minutes on a laptop, no download.

Differs from the paper's recipe in size only: nano backbone, slim heads, 192-pixel images, a short
schedule with the learning rate that training from scratch needs.
"""

from .common.mask_rcnn_srvit import (
    L,
    T,
    class_names,
    dataloader,
    lr_multiplier,
    model,
    optimizer,
    own_data,
    train,
)

_WIDTH, _SIZE, _BATCH = 64, 192, 4

model.backbone.net.variant = "srvit_nano_t3"
model.backbone.net.img_size = _SIZE
model.backbone.net.drop_path_rate = 0.0
model.backbone.out_channels = _WIDTH
model.backbone.square_pad = 0
model.proposal_generator.head.in_channels = _WIDTH
model.proposal_generator.anchor_generator.sizes = [[16], [32], [48], [64], [96]]
model.proposal_generator.pre_nms_topk = (500, 250)
model.proposal_generator.post_nms_topk = (200, 100)
_heads = model.roi_heads
_heads.batch_size_per_image = 64
_heads.box_head.input_shape.channels = _heads.mask_head.input_shape.channels = _WIDTH
_heads.box_head.conv_dims = [_WIDTH]
_heads.box_head.fc_dims = [256]
_heads.box_predictor.input_shape.channels = 256
_heads.mask_head.conv_dims = [_WIDTH] * 3

own_data.train_json, own_data.train_images = "datasets/coins/train.json", "datasets/coins/train"
own_data.val_json, own_data.val_images = "datasets/coins/val.json", "datasets/coins/val"
# Large-scale jittering would hide the size, which is what tells the two classes apart.
dataloader.train.mapper.augmentations = [
    L(T.RandomFlip)(horizontal=True),
    L(T.RandomFlip)(horizontal=False, vertical=True),
]
dataloader.test.mapper.augmentations = []
dataloader.train.total_batch_size = _BATCH
dataloader.train.num_workers = dataloader.test.num_workers = 0

train.output_dir = "output/demo"
train.init_checkpoint = ""
train.max_iter = 600
train.eval_period = train.checkpointer.period = 200
optimizer.lr = 1e-3
optimizer.params.lr_decay_rate = 1.0
lr_multiplier.warmup_length = 50 / train.max_iter
