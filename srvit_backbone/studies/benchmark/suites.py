"""The suites: each prints and returns what it measured."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import timm
import torch
from torch import Tensor

from srvit_backbone.analysis.peak_memory import run_alone
from srvit_backbone.studies.benchmark.cases import (
    detectron2_case,
    forward_pass,
    infer,
    plain_stack,
    step_ends,
    training_step,
)
from srvit_backbone.studies.benchmark.timing import (
    processor,
    show_progress,
    shown,
    spread,
    time_in_turn,
)
from srvit_backbone.studies.paper_figures import paper_figures

QUICK_ROUNDS = 3
POLICY_NAMES = {False: "store all", True: "recompute all"}


@torch.inference_mode()
def throughput(rounds: int, device: str) -> dict:
    """Table 3's images/s relative to DeiT-S."""
    paper = paper_figures()["classification"]
    result = {}
    for size, batch in ((224, 4), (384, 1)) if device == "cpu" else ((224, 256), (384, 64)):
        names = [name for name in paper if name != "srvit_deit_b"]
        models = {name: timm.create_model(name, img_size=size).eval().to(device) for name in names}
        image = torch.randn(batch, 3, size, size, device=device)
        seconds = time_in_turn(
            {name: partial(model, image) for name, model in models.items()}, rounds, device
        )
        print(f"images/s relative to DeiT-S at {size} pixels, batch {batch} (paper's GPU)")
        base = paper["srvit_deit_s"]
        for name in names[1:]:
            row = paper[name]
            ours = spread(seconds["srvit_deit_s"], seconds[name])
            printed = row["images_per_s"][size] / base["images_per_s"][size]
            flops = base["flops"][size] / row["flops"][size]
            line = f"  {row['label']:15} {shown(ours)}  paper {printed:.3f}  1 / FLOPs {flops:.3f}"
            if device != "cpu":
                line += f"  {batch / statistics.median(seconds[name]):.0f} images/s"
            print(line)
            result[f"{name} {size}"] = {"ours": ours, "paper": printed, "flops": flops}
    return result


@torch.inference_mode()
def depth(rounds: int, device: str) -> dict:
    """Forward time against a plain stack of the same effective depth: the price of the mixture."""
    print("forward time of srvit_s_t3 / plain stack of 32 timm blocks and 8 linear maps")
    result = {}
    for size, batch in ((224, 8), (1024, 1)):
        ours = timm.create_model("srvit_s_t3", img_size=size, num_classes=0).eval().to(device)
        plain = plain_stack(
            size, ours.effective_depth, step_ends(ours.unit_depths, ours.recursion_depth)
        )
        plain = plain.eval().to(device)
        image: Tensor = torch.randn(batch, 3, size, size, device=device)
        seconds = time_in_turn(
            {"ours": partial(ours, image), "plain": partial(plain, image)},
            rounds,
            device,
            warm_up=size == 224 or device != "cpu",
        )
        result[str(size)] = spread(seconds["ours"], seconds["plain"])
        print(f"  {size} pixels, batch {batch}: {shown(result[str(size)])}")
    return result


@torch.inference_mode()
def detectron2(rounds: int, device: str) -> dict:
    """Time and memory of a forward pass at 1024 pixels against Detectron2's ViT of depth 32."""
    names = ("ours", "Detectron2", "ours, windowed", "Detectron2, windowed")
    image = torch.randn(1, 3, 1024, 1024, device=device)
    models = {name: detectron2_case(name).to(device) for name in names}
    # On a CPU a pass takes seconds, of which warming up is no part worth waiting for.
    seconds = time_in_turn(
        {name: partial(model, image) for name, model in models.items()},
        rounds,
        device,
        warm_up=device != "cpu",
    )
    peaks = {name: run_alone(forward_pass, name, device)[0] for name in names}
    print("backbone of depth 32, width 384 at 1024 pixels, batch 1: Detectron2's ViT / ours")
    result = {}
    for ours, theirs in (names[:2], names[2:]):
        faster = spread(seconds[theirs], seconds[ours])
        kind = "windowed" if "windowed" in ours else "global"
        print(
            f"  {kind:9} time {shown(faster)}  peak memory {peaks[theirs]:.0f} / {peaks[ours]:.0f} "
            f"MiB = {peaks[theirs] / peaks[ours]:.2f}"
        )
        result[kind] = {"time": faster, "memory": [peaks[theirs], peaks[ours]]}
    return result


def memory(rounds: int, device: str) -> dict:
    """Time and peak memory of a training step by checkpointing policy, against DeiT-S without."""
    cases = [
        ("srvit_deit_s", False),
        ("srvit_s_t4", False),
        ("srvit_s_t4", True),
        ("srvit_s_t4", "keep_attention"),
    ]
    # A step takes most of a minute on a CPU, in which little else than the step matters.
    rounds = 1 if rounds <= QUICK_ROUNDS else rounds
    runs: dict[tuple, list[tuple[float, float]]] = {case: [] for case in cases}
    for index in range(rounds):
        for case in cases:
            show_progress(f"round {index + 1} of {rounds}: {case[0]}")
            runs[case].append(run_alone(training_step, *case, device))
    show_progress("")
    print("training step at 1024 pixels, batch 1: peak memory, and time relative to storing all")
    peaks = {case: statistics.median(peak for peak, _ in runs[case]) for case in cases}
    seconds = {case: [second for _, second in runs[case]] for case in cases}
    result, base = {}, peaks[cases[0]]
    for case, peak in peaks.items():
        time_ratio = spread(seconds[case], seconds[(case[0], False)])
        policy = (
            "store all" if case[1] is False else "recompute all" if case[1] is True else case[1]
        )
        print(
            f"  {case[0]:13} {policy:15} {peak:6.0f} MiB = {peak / base:.3f} of DeiT-S, "
            f"time {shown(time_ratio)}"
        )
        result[f"{case[0]}, {policy}"] = {"mib": peak, "ratio": peak / base, "time": time_ratio}
    return result


def runtime(rounds: int, device: str) -> dict:
    """Forward time of srvit_s_t3 in other runtimes and formats, relative to eager float32."""
    import onnxruntime

    from srvit_backbone.deployment.export import export_onnx

    batch, size = 4, 224
    model = timm.create_model("srvit_s_t3").eval().to(device)
    image = torch.randn(batch, 3, size, size, device=device)
    compiled = torch.compile(model)
    half = timm.create_model("srvit_s_t3").eval().to(device, torch.bfloat16)
    functions: dict[str, Callable[[], object]] = {
        "eager": lambda: infer(model, image),
        "torch.compile": lambda: infer(compiled, image),
        "bf16": lambda: infer(half, image.bfloat16()),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        export_onnx(model.cpu(), path, (batch, 3, size, size))
        model.to(device)
        providers = onnxruntime.get_available_providers()
        session = onnxruntime.InferenceSession(str(path), providers=providers)
        array = image.cpu().numpy()
        functions["ONNX Runtime"] = lambda: session.run(None, {"image": array})
        seconds = time_in_turn(functions, rounds, device)
    print(f"forward time of srvit_s_t3 at {size} pixels, batch {batch}, relative to eager float32")
    result = {}
    for name in functions:
        result[name] = spread(seconds[name], seconds["eager"])
        print(f"  {name:14} {shown(result[name])}")
    return result


SUITES = {suite.__name__: suite for suite in (throughput, depth, detectron2, memory, runtime)}


def run_suites(names: list[str], rounds: int | None, device: str) -> Iterator[dict[str, Any]]:
    """Run suites one after the other.

    Args:
        names: Keys of SUITES; "quick" among them for all, in a few rounds.
        rounds: Measurements of each; None for 7, or those of "quick".
        device: "cpu", or "cuda".

    Yields:
        All results so far, by suite, with date and machine.
    """
    quick = "quick" in names
    rounds = rounds or (QUICK_ROUNDS if quick else 7)
    machine = torch.cuda.get_device_name() if device == "cuda" else processor()
    threads = torch.get_num_threads()
    results: dict[str, Any] = {
        "date": str(date.today()),
        "machine": f"{machine}, {threads} threads, torch {torch.__version__}, {rounds} rounds",
    }
    print(f"{results['date']}: {results['machine']}")
    for name in SUITES if quick else names:
        start = time.monotonic()
        results[name] = SUITES[name](rounds, device)
        print(f"  ({name} took {time.monotonic() - start:.0f} s)", flush=True)
        yield results
