"""Times taken in turn, round by round, so that a busy machine slows all alike."""

import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch


def time_in_turn(
    functions: dict[str, Callable[[], object]], rounds: int, device: str, warm_up: bool = True
) -> dict[str, list[float]]:
    """Seconds of each function in each round, after one round of warming up if wanted."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for index in range(0 if warm_up else 1, rounds + 1):
        for name, function in functions.items():
            _wait(device)
            start = time.perf_counter()
            function()
            _wait(device)
            if index:
                seconds[name].append(time.perf_counter() - start)
        show_progress(f"round {index} of {rounds}")
    show_progress("")
    return seconds


def spread(numerator: list[float], denominator: list[float]) -> tuple[float, float, float]:
    """Median, lowest and highest of the rounds' ratios."""
    ratios = [a / b for a, b in zip(numerator, denominator, strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)


def shown(values: tuple[float, float, float]) -> str:
    """A spread as text."""
    return f"{values[0]:.3f} ({values[1]:.3f} - {values[2]:.3f})"


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:40}\r", end="", file=sys.stderr, flush=True)


def processor() -> str:
    """Name of the CPU, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
