# DINO on scenes of coins: nano backbone, two layers in encoder and decoder, fewer queries.
from mmengine import Config

_base_ = ["./dino_srvit_s_t3.py"]
# Not a second base: DINO's own config states data and schedule too.
coins = Config.fromfile("{{ fileDirname }}/_base_/coins.py")
model = dict(
    num_queries=50,
    backbone=coins.nano,
    neck=dict(in_channels=coins.slim.in_channels),
    encoder=dict(num_layers=2),
    decoder=dict(num_layers=2),
    bbox_head=dict(num_classes=2),
    dn_cfg=dict(group_cfg=dict(num_dn_queries=20)),
    test_cfg=dict(max_per_img=50),
)
train_dataloader = dict(_delete_=True, **coins.train_dataloader)
val_dataloader = dict(_delete_=True, **coins.val_dataloader)
test_dataloader = val_dataloader
val_evaluator = coins.val_evaluator
test_evaluator = val_evaluator
optim_wrapper = dict(optimizer=dict(lr=3e-4), paramwise_cfg=dict(decay_rate=1.0))
param_scheduler = coins.param_scheduler
train_cfg = dict(_delete_=True, **coins.train_cfg)
default_hooks = coins.default_hooks
log_processor = coins.log_processor
randomness = coins.randomness
del coins
