"""A training stream that continues exactly where it was, for any framework.

The frameworks' own loaders restart their order or their augmentations when a run is resumed. Here
the image at a position of the stream, and the randomness of its augmentation, are functions of
(seed, position) alone: however often a run is interrupted, and with however many workers or
processes, it sees the same images in the same form.
"""

import contextlib
import random
from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import Sampler


class StreamSampler(Sampler):
    """Endless (position, index) pairs: every image once an epoch, in an order of its own.

    Args:
        size: Number of images.
        seed: Of the whole stream.
        start: First position; positions are dealt to the processes in turn.
        rank: Of this process.
        world_size: Number of processes.
    """

    def __init__(
        self, size: int, seed: int = 0, start: int = 0, rank: int = 0, world_size: int = 1
    ) -> None:
        self.size, self.seed, self.start = size, seed, start
        self.rank, self.world_size = rank, world_size

    def __iter__(self) -> Iterator[tuple[int, int]]:
        position = self.start + self.rank
        epoch, order = -1, []
        while True:
            if position // self.size != epoch:
                epoch = position // self.size
                order = np.random.default_rng((self.seed, epoch)).permutation(self.size).tolist()
            yield position, order[position % self.size]
            position += self.world_size

    def skip(self, count: int) -> None:
        """Begin ``count`` images of each process later."""
        self.start += count * self.world_size


@contextlib.contextmanager
def seeded(seed: int, position: int) -> Iterator[None]:
    """Seed NumPy, Python and torch, and put all three back: without workers the model uses them."""
    states = np.random.get_state(), random.getstate()
    number = int(np.random.SeedSequence((seed, position)).generate_state(1)[0])
    with torch.random.fork_rng(devices=[]):
        np.random.seed(number)
        random.seed(number)
        torch.manual_seed(number)
        try:
            yield
        finally:
            np.random.set_state(states[0])
            random.setstate(states[1])


def micro_batch_size(images: int, most: int) -> int:
    """Size of the fewest equal parts of a batch of ``images`` that hold at most ``most`` each."""
    return next(size for size in range(min(images, most), 0, -1) if images % size == 0)


def seed_iteration(seed: int, iteration: int, rank: int, world_size: int) -> None:
    """Seed torch for an iteration (drop path, dropout, sampling of proposals) after loading.

    After, because starting a data loader, at the first iteration or a resumed one, draws too.
    """
    torch.manual_seed(seed + iteration * world_size + rank)
