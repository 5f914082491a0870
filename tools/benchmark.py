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

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    suites = ("throughput", "depth", "detectron2", "memory", "runtime", "quick")
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("suite", nargs="+", choices=suites)
    parser.add_argument("--rounds", type=int, help="measurements of each, default 7 (quick: 3)")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: a GPU if there is one")
    parser.add_argument("--output", type=Path, help="json file for the results")
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Measure, keep what was measured so far."""
    import torch

    from srvit_backbone.files import write_json
    from srvit_backbone.studies.benchmark.suites import run_suites

    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    for results in run_suites(args.suite, args.rounds, device):
        if args.output:
            write_json(args.output, results)


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
