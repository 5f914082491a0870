"""Measure speed and memory as ratios within one run, on the CPU or a GPU.

    python tools/benchmark.py throughput   # images/s relative to DeiT-S, beside the paper's ratios
    python tools/benchmark.py depth        # SR-ViT-S (T = 3) against a plain stack as deep
    python tools/benchmark.py detectron2   # against Detectron2's own ViT at the same depth
    python tools/benchmark.py memory       # a training step at 1024 pixels by checkpointing policy
    python tools/benchmark.py runtime      # eager, torch.compile, ONNX Runtime, bf16
    python tools/benchmark.py quick        # all of them in a few rounds

Times are taken in turn, round by round, so that a busy machine slows all alike; printed is the
median of the rounds' ratios, with the lowest and the highest. On a GPU absolute figures are printed
too. ``--output`` keeps the results for tools/draw_charts.py.
"""

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path

import timm
import torch
from omegaconf import OmegaConf
from torch import Tensor, nn

import srvit_backbone  # noqa: F401  registers the variants
from srvit_backbone.analysis.peak_memory import run_alone
from srvit_backbone.errors import run_program

QUICK_ROUNDS = 3
FIGURES = Path(__file__).with_name("paper_figures.yaml")


# --- measuring ----------------------------------------------------------------------


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
        _progress(f"round {index} of {rounds}")
    _progress("")
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


def detectron2_vit(depth: int, windowed: bool) -> nn.Module:
    """Detectron2's ViT of SR-ViT-S's width at 1024 pixels.

    Windowed as ViTDet's configs have it: windows of 14 tokens, four global blocks at equal
    distances, relative positions. Global: no relative positions, which ours does not have either.
    """
    from detectron2.modeling import ViT

    global_blocks = {(index + 1) * depth // 4 - 1 for index in range(4)}
    return ViT(
        img_size=1024,
        embed_dim=384,
        depth=depth,
        num_heads=6,
        use_rel_pos=windowed,
        window_size=14 if windowed else 0,
        window_block_indexes=[i for i in range(depth) if windowed and i not in global_blocks],
    )


def our_backbone(window_size: int) -> nn.Module:
    """SR-ViT-S, T = 3, as Detectron2 gets it."""
    from srvit_backbone.adapters.d2_backbone import SRViTBackbone

    return SRViTBackbone("srvit_s_t3", img_size=1024, window_size=window_size)


def detectron2_case(name: str) -> nn.Module:
    """One of the four backbones that suite ``detectron2`` compares."""
    cases = {
        "ours": lambda: our_backbone(0),
        "ours, windowed": lambda: our_backbone(16),
        "Detectron2": lambda: detectron2_vit(32, False),
        "Detectron2, windowed": lambda: detectron2_vit(32, True),
    }
    return cases[name]().eval()


@torch.inference_mode()
def forward_pass(name: str, device: str) -> None:
    """Build one of the backbones and run it once."""
    detectron2_case(name).to(device)(torch.randn(1, 3, 1024, 1024, device=device))


def training_step(name: str, checkpointing: bool | str, device: str) -> None:
    """Forward, backward and AdamW's first step of a backbone on one image of 1024 pixels."""
    model = timm.create_model(name, img_size=1024, num_classes=0, global_pool="avg").to(device)
    model.set_grad_checkpointing(checkpointing)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(1, 3, 1024, 1024, device=device)).square().mean().backward()
    optimizer.step()


# --- the suites: each prints and returns what it measured ----------------------------


@torch.inference_mode()
def throughput(rounds: int, device: str) -> dict:
    """Table 3's images/s relative to DeiT-S."""
    paper = OmegaConf.load(FIGURES).classification
    result = {}
    for size, batch in ((224, 4), (384, 1)) if device == "cpu" else ((224, 256), (384, 64)):
        names = [name for name in paper if name != "srvit_deit_b"]
        models = {name: timm.create_model(name, img_size=size).eval().to(device) for name in names}
        image = torch.randn(batch, 3, size, size, device=device)
        seconds = time_in_turn(
            {name: lambda m=model, x=image: m(x) for name, model in models.items()}, rounds, device
        )
        print(f"images/s relative to DeiT-S at {size} pixels, batch {batch} (paper's GPU)")
        base = paper.srvit_deit_s
        for name in names[1:]:
            row = paper[name]
            ours = spread(seconds["srvit_deit_s"], seconds[name])
            printed = row.images_per_s[size] / base.images_per_s[size]
            flops = base.flops[size] / row.flops[size]
            line = f"  {row.label:15} {shown(ours)}  paper {printed:.3f}  1 / FLOPs {flops:.3f}"
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
            {"ours": lambda m=ours, x=image: m(x), "plain": lambda m=plain, x=image: m(x)},
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
        {name: lambda m=model: m(image) for name, model in models.items()},
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
            _progress(f"round {index + 1} of {rounds}: {case[0]}")
            runs[case].append(run_alone(training_step, *case, device))
    _progress("")
    print("training step at 1024 pixels, batch 1: peak memory, and time relative to storing all")
    peaks = {case: statistics.median(peak for peak, _ in runs[case]) for case in cases}
    seconds = {case: [second for _, second in runs[case]] for case in cases}
    result, base = {}, peaks[cases[0]]
    for case, peak in peaks.items():
        time_ratio = spread(seconds[case], seconds[(case[0], False)])
        policy = {False: "store all", True: "recompute all"}.get(case[1], case[1])
        print(
            f"  {case[0]:13} {policy:15} {peak:6.0f} MiB = {peak / base:.3f} of DeiT-S, "
            f"time {shown(time_ratio)}"
        )
        result[f"{case[0]}, {policy}"] = {"mib": peak, "ratio": peak / base, "time": time_ratio}
    return result


def infer(model: nn.Module, image: Tensor) -> None:
    """A forward pass without what gradients need."""
    with torch.inference_mode():
        model(image)


def runtime(rounds: int, device: str) -> dict:
    """Forward time of srvit_s_t3 in other runtimes and formats, relative to eager float32."""
    import onnxruntime

    from srvit_backbone.export import export_onnx

    batch, size = 4, 224
    model = timm.create_model("srvit_s_t3").eval().to(device)
    image = torch.randn(batch, 3, size, size, device=device)
    compiled = torch.compile(model)
    half = timm.create_model("srvit_s_t3").eval().to(device, torch.bfloat16)
    functions = {
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


def processor() -> str:
    """Name of the CPU, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", nargs="+", choices=[*SUITES, "quick"])
    parser.add_argument("--rounds", type=int, help="measurements of each, default 7 (quick: 3)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", type=Path, help="json file for the results")
    args = parser.parse_args()
    quick = "quick" in args.suite
    rounds = args.rounds or (QUICK_ROUNDS if quick else 7)
    machine = torch.cuda.get_device_name() if args.device == "cuda" else processor()
    threads = torch.get_num_threads()
    results = {
        "date": str(date.today()),
        "machine": f"{machine}, {threads} threads, torch {torch.__version__}, {rounds} rounds",
    }
    print(f"{results['date']}: {results['machine']}")
    for name in SUITES if quick else args.suite:
        start = time.monotonic()
        results[name] = SUITES[name](rounds, args.device)
        print(f"  ({name} took {time.monotonic() - start:.0f} s)", flush=True)
        if args.output:
            args.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    run_program(main)
