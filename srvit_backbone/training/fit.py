"""A recipe on the hardware at hand: another batch size, a limit of memory.

The same in detection, segmentation and pretraining. ``batch`` is the images of an optimizer step:
the learning rate follows it in proportion, and the schedule is stretched so that as many images are
seen. ``memory`` bounds what a process uses: it is kept by accumulating gradients over parts of
the batch, and only where one image does not fit by recomputing activations.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from srvit_backbone.errors import InputError

# From fast to slim: what set_grad_checkpointing takes.
POLICIES = {"store": False, "keep_attention": "keep_attention", "recompute": True}
UNITS = {"MB": 1e6, "MIB": 2**20, "GB": 1e9, "GIB": 2**30}
# Left to the driver, the allocator and the frameworks' own small tensors.
HEADROOM = 0.1


@dataclass(frozen=True)
class Parts:
    """How a process spreads its share of a batch, and what it recomputes.

    Attributes:
        images: Of one forward pass.
        policy: A key of POLICIES.
        bytes: Estimated peak of a step.
    """

    images: int
    policy: str
    bytes: int


def parse_memory(text: str) -> int:
    """Bytes of "12GB", "800MB" or "11.5GiB".

    Raises:
        InputError: It is none of these.
    """
    match = re.fullmatch(r"([\d.]+)\s*([KMG]i?B)", text.strip(), re.IGNORECASE)
    if not match or match[2].upper() not in UNITS:
        raise InputError(f"memory={text!r}: write it as 12GB, 800MB or 11.5GiB")
    return int(float(match[1]) * UNITS[match[2].upper()])


def parts_that_fit(
    share: int, limit: int, estimate: Callable[[int, str, bool], int], least: int = 1
) -> Parts:
    """The largest equal parts of a process's share that fit, recomputing as little as possible.

    Args:
        share: Images a step of one process.
        limit: Bytes it may use.
        estimate: (images, policy, whether gradients are accumulated) -> bytes of a step.
        least: Images of the smallest part, e.g. 2 for batch norm.

    Raises:
        InputError: Not even the smallest part fits with everything recomputed.
    """
    usable = limit * (1 - HEADROOM)
    sizes = [n for n in range(1, share) if share % n == 0 and n >= least]
    for policy in POLICIES:
        whole = estimate(share, policy, False)
        if whole <= usable:
            return Parts(share, policy, whole)

        @cache
        def need(images: int, policy: str = policy) -> int:
            return estimate(images, policy, True)

        fitting = bisect_right(sizes, usable, key=need)
        if fitting:
            images = sizes[fitting - 1]
            return Parts(images, policy, need(images))
    smallest, least_need = (sizes[0], need(sizes[0])) if sizes else (share, whole)
    raise InputError(
        f"memory of {limit / 1e9:.2f} GB is too little: {smallest} image(s) with all activations "
        f"recomputed need {least_need / 1e9:.2f} GB and {HEADROOM:.0%} to spare; use smaller "
        "images or a smaller variant"
    )


def share_of(batch: int, processes: int) -> int:
    """Images a step of each process.

    Raises:
        InputError: The batch is not a multiple of the processes.
    """
    if batch < 1 or batch % processes:
        raise InputError(f"a batch of {batch} cannot be spread evenly over {processes} process(es)")
    return batch // processes


def stretched(length: int, old_batch: int, new_batch: int) -> int:
    """Iterations that see as many images with another batch; at least one."""
    return max(1, round(length * old_batch / new_batch))


def changes_table(rows: Iterable[tuple[str, object, object]]) -> str:
    """What was changed, as lines of a table; equal values are left out."""
    changed = [(name, str(old), str(new)) for name, old, new in rows if str(old) != str(new)]
    if not changed:
        return "Fitting changed nothing: the recipe's batch fits as it is"
    width = max(len(name) for name, _, _ in changed)
    lines = [f"  {name:{width}}  {old} -> {new}" for name, old, new in changed]
    return "\n".join(["To fit, the recipe was changed:", *lines])
