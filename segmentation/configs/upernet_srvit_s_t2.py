_base_ = ["./upernet_srvit_s_t3.py"]
model = dict(backbone=dict(variant="srvit_s_t2", pretrained="pretrained/srvit_s_t2.safetensors"))
