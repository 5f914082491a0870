"""Peak memory and time of a function, in a process of its own."""

import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

MIB = 2**20
# Else glibc keeps smaller tensors on a heap with holes, which can take twice what lives.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(MIB)}


def run_alone(function: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """Peak memory in MiB and seconds of a function in a process of its own.

    On a GPU what torch allocated, on the CPU what the process grew by.
    """
    before = {name: os.environ.get(name) for name in ALLOCATOR}
    os.environ.update(ALLOCATOR)
    try:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(_measure, (function, *arguments))
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _measure(function: Callable[..., object], *arguments: object) -> tuple[float, float]:
    before, start = _resident(), time.perf_counter()
    function(*arguments)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() / MIB, time.perf_counter() - start
    return (_resident() - before) / MIB, time.perf_counter() - start


def _resident() -> int:
    """The process's own peak so far, in bytes."""
    status = Path("/proc/self/status")
    if status.is_file():  # Linux, where getrusage starts with the parent's peak
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
