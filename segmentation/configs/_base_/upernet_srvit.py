# UPerNet with the Multi-Level Neck on SR-ViT-S (section D.3). A config of a wider model
# states its width once and the channels anew.
width = 384
norm_cfg = dict(type="SyncBN", requires_grad=True)
# Everything of ours is registered by this import, also in an installed mmseg.
custom_imports = dict(imports=["srvit_backbone.openmmlab.segmentation"], allow_failed_imports=False)
model = dict(
    type="EncoderDecoder",
    data_preprocessor=dict(
        type="SegDataPreProcessor",
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        pad_val=0,
        seg_pad_val=255,
        size=(512, 512),
    ),
    backbone=dict(
        type="SRViTBackbone",
        variant="srvit_s_t3",
        img_size=512,
        # The four units R4, R3, R2, R1.
        out_indices=(0, 1, 2, 3),
        drop_path_rate=0.1,
    ),
    neck=dict(
        type="AnySizeMultiLevelNeck",
        in_channels=[width] * 4,
        out_channels=width,
        scales=[4, 2, 1, 0.5],
    ),
    decode_head=dict(
        type="UPerHead",
        in_channels=[width] * 4,
        in_index=[0, 1, 2, 3],
        pool_scales=(1, 2, 3, 6),
        # 256 and not mmseg's 512: so the parameters and FLOPs of Table 4 come out.
        channels=256,
        dropout_ratio=0.1,
        num_classes=150,
        norm_cfg=norm_cfg,
        align_corners=False,
        loss_decode=dict(type="CrossEntropyLoss", use_sigmoid=False, loss_weight=1.0),
    ),
    auxiliary_head=dict(
        type="FCNHead",
        in_channels=width,
        in_index=3,
        channels=256,
        num_convs=1,
        concat_input=False,
        dropout_ratio=0.1,
        num_classes=150,
        norm_cfg=norm_cfg,
        align_corners=False,
        loss_decode=dict(type="CrossEntropyLoss", use_sigmoid=False, loss_weight=0.4),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode="whole"),
)
