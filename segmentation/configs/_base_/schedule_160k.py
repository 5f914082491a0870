# Section D.3. Without layer-wise decay; to have it, set optim_wrapper.constructor to
# SRViTLayerDecayOptimWrapperConstructor with paramwise_cfg=dict(decay_rate=...).
max_iters = 160000
warmup_iters = 1500
interval = max_iters // 10
auto_scale_lr = dict(base_batch_size=16)  # the batch these are for; fit goes by it
optim_wrapper = dict(
    type="OptimWrapper",
    optimizer=dict(type="AdamW", lr=6e-5, betas=(0.9, 0.999), weight_decay=0.01),
    paramwise_cfg=dict(
        custom_keys=dict(
            pos_embed=dict(decay_mult=0.0),
            cls_token=dict(decay_mult=0.0),
            norm=dict(decay_mult=0.0),
        )
    ),
)
param_scheduler = [
    dict(type="LinearLR", start_factor=1e-6, by_epoch=False, begin=0, end=warmup_iters),
    dict(type="PolyLR", eta_min=0.0, power=1.0, begin=warmup_iters, end=max_iters, by_epoch=False),
]
train_cfg = dict(type="IterBasedTrainLoop", max_iters=max_iters, val_interval=interval)
val_cfg = dict(type="ValLoop")
test_cfg = dict(type="TestLoop")
default_hooks = dict(
    timer=dict(type="IterTimerHook"),
    logger=dict(type="LoggerHook", interval=50, log_metric_by_epoch=False),
    param_scheduler=dict(type="ParamSchedulerHook"),
    checkpoint=dict(
        type="CheckpointHook", by_epoch=False, interval=interval, max_keep_ckpts=3, save_best="mIoU"
    ),
    sampler_seed=dict(type="DistSamplerSeedHook"),
    visualization=dict(type="SegVisualizationHook"),
)
