_base_ = ["./upernet_deit_s.py"]
width = 768
model = dict(
    backbone=dict(variant="srvit_deit_b", pretrained="pretrained/srvit_deit_b.safetensors"),
    neck=dict(in_channels=[width] * 4, out_channels=width),
    decode_head=dict(in_channels=[width] * 4),
    auxiliary_head=dict(in_channels=width),
)
