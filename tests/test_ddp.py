"""Two gloo processes on the CPU: field report 9 and T8."""

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

from srvit_backbone import SRViT

SETTINGS = {
    "img_size": 32,
    "num_classes": 3,
    "embed_dim": 32,
    "num_heads": 2,
    "unit_depths": (2, 1),
}
WORLD, STEPS = 2, 2


def build(settings, checkpointing):
    torch.manual_seed(0)
    model = SRViT(**SETTINGS, **settings)
    model.set_grad_checkpointing(checkpointing)
    return model.train()


def data(step):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(2 * WORLD, 3, 32, 32, generator=generator)


def train(model, shard):
    """Two SGD steps; the gradients of both."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gradients = []
    for step in range(STEPS):
        optimizer.zero_grad()
        model(shard(data(step))).square().mean().backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
        optimizer.step()
    return gradients


def worker(rank, settings, checkpointing, folder):
    dist.init_process_group("gloo", f"file://{folder}/init", rank=rank, world_size=WORLD)
    model = DistributedDataParallel(build(settings, checkpointing), find_unused_parameters=False)
    gradients = train(model, lambda x: x.chunk(WORLD)[rank])
    if rank == 0:
        torch.save(gradients, f"{folder}/gradients.pth")
    dist.destroy_process_group()


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("settings", [{}, {"aggregation": "hard"}])
def test_gradients_equal_one_process(tmp_path, checkpointing, settings):
    mp.spawn(worker, (settings, checkpointing, str(tmp_path)), nprocs=WORLD)
    parallel = torch.load(tmp_path / "gradients.pth")
    alone = train(build(settings, False), lambda x: x)
    for given, expected in zip(parallel, alone, strict=True):
        for a, b in zip(given, expected, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
