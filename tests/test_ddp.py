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


CASES = [
    (settings, checkpointing)
    for settings in ({}, {"aggregation": "hard"})
    for checkpointing in (False, True)
]


def worker(rank, folder):
    dist.init_process_group("gloo", f"file://{folder}/init", rank=rank, world_size=WORLD)
    torch.set_num_threads(1)
    for number, case in enumerate(CASES):
        model = DistributedDataParallel(build(*case), find_unused_parameters=False)
        gradients = train(model, lambda x: x.chunk(WORLD)[rank])
        if rank == 0:
            torch.save(gradients, f"{folder}/{number}.pth")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def parallel(tmp_path_factory):
    """Gradients of every case from two processes."""
    folder = tmp_path_factory.mktemp("ddp")
    mp.spawn(worker, (str(folder),), nprocs=WORLD)
    return folder


@pytest.mark.parametrize("number", range(len(CASES)))
def test_gradients_equal_one_process(parallel, number):
    settings, _ = CASES[number]
    alone = train(build(settings, False), lambda x: x)
    for given, expected in zip(torch.load(parallel / f"{number}.pth"), alone, strict=True):
        for a, b in zip(given, expected, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
