# The paper's COCO recipe (section D.2) in MMDetection's terms: 1024 pixels, large-scale jittering,
# 8 GPUs x 2 images, AdamW with layer-wise decay, cosine, 3x. COCO is found by the environment
# variable COCO.
_base_ = ["mmdet::_base_/default_runtime.py"]
data_root = "{{$COCO:data/coco/}}"
max_iters = 270000
warmup_iters = 1000
interval = 5000
image_size = (1024, 1024)
jitter = [
    dict(type="RandomResize", scale=image_size, ratio_range=(0.1, 2.0), keep_ratio=True),
    dict(
        type="RandomCrop",
        crop_type="absolute_range",
        crop_size=image_size,
        recompute_bbox=False,
        allow_negative_crop=True,
    ),
    dict(type="FilterAnnotations", min_gt_bbox_wh=(1e-2, 1e-2)),
    dict(type="RandomFlip", prob=0.5),
]
train_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="LoadAnnotations", with_bbox=True),
    *jitter,
    dict(type="PackDetInputs"),
]
test_pipeline = [
    dict(type="LoadImageFromFile"),
    dict(type="Resize", scale=image_size, keep_ratio=True),
    dict(
        type="PackDetInputs",
        meta_keys=("img_id", "img_path", "ori_shape", "img_shape", "scale_factor"),
    ),
]
train_dataloader = dict(
    batch_size=2,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type="InfiniteSampler"),
    dataset=dict(
        type="CocoDataset",
        data_root=data_root,
        ann_file="annotations/instances_train2017.json",
        data_prefix=dict(img="train2017/"),
        filter_cfg=dict(filter_empty_gt=True),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type="DefaultSampler", shuffle=False),
    dataset=dict(
        type="CocoDataset",
        data_root=data_root,
        ann_file="annotations/instances_val2017.json",
        data_prefix=dict(img="val2017/"),
        test_mode=True,
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(
    type="CocoMetric", ann_file=data_root + "annotations/instances_val2017.json", metric="bbox"
)
test_evaluator = val_evaluator
optim_wrapper = dict(
    type="OptimWrapper",
    optimizer=dict(type="AdamW", lr=1e-4, betas=(0.9, 0.999), weight_decay=0.1),
    constructor="SRViTLayerDecayOptimWrapperConstructor",
    paramwise_cfg=dict(decay_rate=0.7),
)
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
train_cfg = dict(type="IterBasedTrainLoop", max_iters=max_iters, val_interval=interval)
val_cfg = dict(type="ValLoop")
test_cfg = dict(type="TestLoop")
default_hooks = dict(
    logger=dict(interval=20, log_metric_by_epoch=False),
    checkpoint=dict(by_epoch=False, interval=interval, max_keep_ckpts=3),
)
custom_hooks = [dict(type="NumClassCheckHook")]
log_processor = dict(by_epoch=False)
auto_scale_lr = dict(base_batch_size=16)
