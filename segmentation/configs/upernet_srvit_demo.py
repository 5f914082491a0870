# A small segmentor on scenes of real coins: minutes on a laptop, no download. Differs from the
# paper's recipe in size only: nano backbone, slim heads, 192-pixel scenes, a short schedule with
# the learning rate that training from scratch needs.
_base_ = ["./upernet_srvit_s_t3.py"]
classes = ["background", "small coin", "large coin"]
palette = [[30, 30, 30], [255, 190, 40], [60, 150, 255]]
num_classes = len(classes)
data_root = "{{$COINS:datasets/coins/ade}}"
# Of any file with such a backbone, e.g. the demo's detector.
weights = "{{$BACKBONE:scratch}}"
width, channels, size = 96, 64, (192, 192)
model = dict(
    data_preprocessor=dict(size=size),
    backbone=dict(
        variant="srvit_nano_t3",
        pretrained=None if weights == "scratch" else weights,
        img_size=size,
        # Its two units, then the last block.
        out_indices=(0, 1, 2),
        drop_path_rate=0.0,
    ),
    neck=dict(
        in_channels=[width] * 3,
        out_channels=channels,
        scales=[4, 2, 1],
        norm_cfg=dict(type="SyncBN"),
    ),
    decode_head=dict(
        in_channels=[channels] * 3, in_index=[0, 1, 2], channels=channels, num_classes=num_classes
    ),
    auxiliary_head=dict(
        in_channels=channels, in_index=2, channels=channels, num_classes=num_classes
    ),
)
train_pipeline = [
    dict(type="LoadPicture"),
    dict(type="LoadMask"),
    # Not resized: the size is what tells the two kinds of coins apart.
    dict(type="RandomFlip", prob=0.5),
    dict(type="RandomFlip", prob=0.5, direction="vertical"),
    dict(type="PackSegInputs"),
]
test_pipeline = [
    dict(type="LoadPicture"),
    dict(type="LoadMask"),
    dict(type="PackSegInputs"),
]
folders = dict(
    _delete_=True,
    type="CheckedSegDataset",
    data_root=data_root,
    reduce_zero_label=True,
    metainfo=dict(classes=classes, palette=palette),
)
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    persistent_workers=False,
    dataset=dict(
        data_prefix=dict(img_path="images/training", seg_map_path="annotations/training"),
        pipeline=train_pipeline,
        **folders,
    ),
)
val_dataloader = dict(
    num_workers=0,
    persistent_workers=False,
    dataset=dict(
        data_prefix=dict(img_path="images/validation", seg_map_path="annotations/validation"),
        pipeline=test_pipeline,
        **folders,
    ),
)
test_dataloader = val_dataloader
del folders
auto_scale_lr = dict(base_batch_size=4)
max_iters = 1000
warmup_iters = 50
optim_wrapper = dict(optimizer=dict(lr=1e-3), clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(type="LinearLR", start_factor=1e-3, by_epoch=False, begin=0, end=warmup_iters),
    dict(type="PolyLR", eta_min=0.0, power=1.0, begin=warmup_iters, end=max_iters, by_epoch=False),
]
train_cfg = dict(max_iters=max_iters, val_interval=500)
default_hooks = dict(checkpoint=dict(interval=500), logger=dict(interval=20))
