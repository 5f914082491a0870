_base_ = ["./upernet_srvit_s_t3.py"]
model = dict(backbone=dict(variant="srvit_t_t3", pretrained="pretrained/srvit_t_t3.safetensors"))
