# MMDetection's DINO (four scales, 12 epochs) on SR-ViT-S (T = 3): DINO's own recipe.
_base_ = ["mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py", "./_base_/srvit_pyramid.py"]
model = dict(
    data_preprocessor=dict(pad_size_divisor=32),
    backbone=_base_.srvit,
    neck=dict(num_outs=4, **_base_.pyramid_from_8),
)
optim_wrapper = dict(
    constructor="SRViTLayerDecayOptimWrapperConstructor",
    paramwise_cfg=dict(_delete_=True, decay_rate=0.7),
)
custom_hooks = [dict(type="NumClassCheckHook")]
