"""Measure speed and memory as ratios within one run, on the CPU or a GPU.

    python tools/benchmark.py depth    # SR-ViT-S, T = 3, against a plain stack of as many blocks
    python tools/benchmark.py memory   # training at 1024 pixels with and without checkpointing

Times are taken in turn, round by round, so that a busy machine slows all alike; printed is the
median of the rounds' ratios, with the lowest and the highest. On a GPU absolute figures are printed
too.
"""

import argparse
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable

import timm
import torch
from torch import Tensor, nn

import srvit_backbone  # noqa: F401  registers the variants
from srvit_backbone.errors import run_program

MIB = 2**20


# --- measuring ----------------------------------------------------------------------


def time_in_turn(
    functions: dict[str, Callable[[], object]], rounds: int, device: str
) -> dict[str, list[float]]:
    """Seconds of each function in each round, after one round of warming up."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for index in range(rounds + 1):
        for name, function in functions.items():
            _wait(device)
            start = time.perf_counter()
            function()
            _wait(device)
            if index:
                seconds[name].append(time.perf_counter() - start)
        _progress(f"round {index} of {rounds}")
    _progress("")
    return seconds


def ratio(numerator: list[float], denominator: list[float]) -> str:
    """Median of the rounds' ratios and their range."""
    ratios = [a / b for a, b in zip(numerator, denominator, strict=True)]
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} - {max(ratios):.3f})"


def peak_memory(function: Callable[..., object], *arguments: object) -> float:
    """MiB that a function allocates at its peak, in a process of its own.

    On a GPU what torch allocated, on the CPU what the process grew by.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (function, *arguments))


def _measure(function: Callable[..., object], *arguments: object) -> float:
    before = _resident()
    function(*arguments)
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / MIB
    return (_resident() - before) / MIB


def _resident() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:40}\r", end="", file=sys.stderr, flush=True)


# --- what is measured ---------------------------------------------------------------


def plain_stack(size: int, depth: int, linear_after: Iterable[int]) -> nn.Module:
    """DeiT-S of timm with ``depth`` blocks, and a linear map behind some of them."""
    model = timm.create_model("deit_small_patch16_224", img_size=size, depth=depth, num_classes=0)
    layers: list[nn.Module] = []
    for index, block in enumerate(model.blocks):
        layers.append(block)
        if index in linear_after:
            layers.append(nn.Linear(model.embed_dim, model.embed_dim))
    model.blocks = nn.Sequential(*layers)
    return model


def step_ends(unit_depths: Iterable[int], recursion_depth: int) -> list[int]:
    """Indices, in the unrolled stack, of the blocks that a step transform follows."""
    ends, index = [], 0
    for depth in unit_depths:
        for step in range(recursion_depth):
            index += depth
            if step + 1 < recursion_depth:
                ends.append(index)
    return ends


def training_step(name: str, size: int, checkpointing: bool, device: str) -> None:
    """Forward, backward and AdamW's first step of a backbone on one image."""
    model = timm.create_model(name, img_size=size, num_classes=0, global_pool="avg").to(device)
    model.set_grad_checkpointing(checkpointing)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(1, 3, size, size, device=device)).square().mean().backward()
    optimizer.step()


# --- the suites ---------------------------------------------------------------------


@torch.inference_mode()
def depth(rounds: int, device: str) -> None:
    """Forward time against a plain stack of the same effective depth: the price of the mixture."""
    print("forward time of srvit_s_t3 / plain stack of 32 timm blocks and 8 linear maps")
    for size, batch in ((224, 8), (1024, 1)):
        ours = timm.create_model("srvit_s_t3", img_size=size, num_classes=0).eval().to(device)
        plain = plain_stack(
            size, ours.effective_depth, step_ends(ours.unit_depths, ours.recursion_depth)
        )
        plain = plain.eval().to(device)
        image: Tensor = torch.randn(batch, 3, size, size, device=device)
        seconds = time_in_turn(
            {"ours": lambda m=ours, x=image: m(x), "plain": lambda m=plain, x=image: m(x)},
            rounds,
            device,
        )
        print(f"  {size} pixels, batch {batch}: {ratio(seconds['ours'], seconds['plain'])}")


def memory(rounds: int, device: str) -> None:
    """Peak training memory of the deepest model with checkpointing against DeiT-S without."""
    cases = [
        ("srvit_deit_s", False),
        ("srvit_deit_s", True),
        ("srvit_s_t4", True),
    ]
    print("peak memory of a training step at 1024 pixels, batch 1")
    base = None
    for name, checkpointing in cases:
        peak = peak_memory(training_step, name, 1024, checkpointing, device)
        base = base or peak
        how = "checkpointing" if checkpointing else "storing all"
        print(f"  {name:14} {how:14} {peak:7.0f} MiB, {peak / base:.3f} of srvit_deit_s")


SUITES = {suite.__name__: suite for suite in (depth, memory)}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", nargs="+", choices=SUITES)
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each, default 7")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    print(f"torch {torch.__version__}, {args.device}, {torch.get_num_threads()} threads")
    for name in args.suite:
        SUITES[name](args.rounds, args.device)


if __name__ == "__main__":
    run_program(main)
