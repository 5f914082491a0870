"""The processes of a run."""

import os

import torch
import torch.distributed as dist


def start_process_group() -> torch.device:
    """Join torchrun's processes, or be the only one; returns this process's device.

    A group of one too: timm's samplers, repeated augmentation among them, then work everywhere.
    """
    gpu = torch.cuda.is_available()
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local_rank) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    backend = "nccl" if gpu else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    return device
