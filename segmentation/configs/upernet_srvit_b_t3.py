_base_ = ["./upernet_srvit_s_t3.py"]
width = 512
model = dict(
    backbone=dict(variant="srvit_b_t3", pretrained="pretrained/srvit_b_t3.safetensors"),
    neck=dict(in_channels=[width] * 4, out_channels=width),
    decode_head=dict(in_channels=[width] * 4),
    auxiliary_head=dict(in_channels=width),
)
