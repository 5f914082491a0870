_base_ = [
    "./_base_/upernet_srvit.py",
    "./_base_/ade20k_512.py",
    "./_base_/schedule_160k.py",
    "./_base_/runtime.py",
]
model = dict(backbone=dict(pretrained="pretrained/srvit_s_t3.safetensors"))
