# Scenes of real coins (tools/make_mini_dataset.py coins) and a short schedule from scratch, minutes
# on a laptop. The data set is found by the environment variable COINS.
_base_ = ["./coco_3x.py"]
data_root = "{{$COINS:datasets/coins}}/"
metainfo = dict(classes=("small coin", "large coin"))
max_iters = 600
warmup_iters = 50
image_size = (192, 192)
# Not resized: the size is what tells the two kinds of coins apart.
jitter = [dict(type="RandomFlip", prob=[0.25, 0.25], direction=["horizontal", "vertical"])]
train_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="LoadAnnotations", with_bbox=True),
    *jitter,
    dict(type="PackDetInputs"),
]
test_pipeline = [
    dict(type="LoadImageFromFile"),
    # Of no effect on scenes of this size; the detectors ask for the scale it notes.
    dict(type="Resize", scale=image_size, keep_ratio=True),
    dict(
        type="PackDetInputs",
        meta_keys=("img_id", "img_path", "ori_shape", "img_shape", "scale_factor"),
    ),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    persistent_workers=False,
    dataset=dict(
        data_root=data_root,
        ann_file="train.json",
        data_prefix=dict(img="train/"),
        metainfo=metainfo,
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    num_workers=0,
    persistent_workers=False,
    dataset=dict(
        data_root=data_root,
        ann_file="val.json",
        data_prefix=dict(img="val/"),
        metainfo=metainfo,
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file=data_root + "val.json")
test_evaluator = val_evaluator
optim_wrapper = dict(optimizer=dict(lr=1e-3), paramwise_cfg=dict(decay_rate=1.0))
param_scheduler = [
    dict(type="LinearLR", start_factor=1e-3, by_epoch=False, begin=0, end=warmup_iters),
    dict(
        type="CosineAnnealingLR",
        eta_min=0.0,
        by_epoch=False,
        begin=warmup_iters,
        end=max_iters,
        T_max=max_iters - warmup_iters,
    ),
]
train_cfg = dict(max_iters=max_iters, val_interval=max_iters)
default_hooks = dict(checkpoint=dict(interval=max_iters))
randomness = dict(seed=0)
# Small enough for a laptop; what a detector's demo config puts into its model.
width = 64
# Without, heads that start from scratch learn little in so few iterations.
norm_cfg = dict(type="LN2d", eps=1e-6)
nano = dict(variant="srvit_nano_t3", img_size=192, drop_path_rate=0.0, pretrained=None)
slim = dict(in_channels=96, out_channels=width)
