_base_ = ["./upernet_srvit_s_t3.py"]
model = dict(
    backbone=dict(
        variant="srvit_deit_s",
        pretrained="pretrained/srvit_deit_s.safetensors",
        # Blocks 3, 6, 9 and 12.
        out_indices=(2, 5, 8, 11),
    )
)
