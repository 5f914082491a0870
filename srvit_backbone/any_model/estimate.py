"""What a run needs before it is started, printed; and real steps beside the estimates."""

import torch

from srvit_backbone.analysis.peak_memory import MIB, run_alone
from srvit_backbone.any_model.cost import SIZES, Costed, count_params
from srvit_backbone.training.fit import POLICIES

# What is measured: model, pixels, images, policy.
SETTINGS = (
    ("srvit_s_t3", 224, 16, "store"),
    ("detection/configs/mask_rcnn_srvit_s_t3.py", 1024, 1, "store"),
    ("segmentation/configs/upernet_srvit_s_t3.py", 512, 2, "recompute"),
)


def estimate(name: str, size: int | None, batch: int, amp: str) -> None:
    """Print one model's figures."""
    model = Costed.of(name)
    size = size or SIZES[model.kind]
    dtype = None if amp == "none" else getattr(torch, amp)
    print(f"{name}, {size} x {size} pixels, {batch} image(s) at a time, AMP {amp}")
    print(f"  parameters            {count_params(model.build('meta')):10.1f} M")
    for what, value in model.flops(size).items():
        print(f"  {value:32.1f} {what} an image")
    for policy in POLICIES:
        memory = model.memory(size, batch, policy, amp_dtype=dtype)
        print(f"  training, {policy:15} {memory.training / MIB:7.0f} MiB")
    print(f"  inference, one image      {memory.inference / MIB:7.0f} MiB")


def measure() -> None:
    """Print estimates beside the peaks of real training steps on the CPU."""
    print("training step, float32: estimated / measured peak memory")
    for name, size, batch, policy in SETTINGS:
        model = Costed.of(name)
        expected = model.memory(size, batch, policy).training / MIB
        measured, _ = run_alone(Costed.train_step, model, size, batch, policy)
        print(
            f"  {name:45} {size:4} pixels, batch {batch:2}, {policy:9} "
            f"{expected:6.0f} / {measured:6.0f} MiB = {expected / measured:.2f}"
        )
