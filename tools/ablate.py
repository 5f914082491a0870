"""Train the paper's ablations (Figure 3, Tables 5 and 6) at small scale, on real data.

    python tools/ablate.py --suite digits --seeds 3   # cluttered handwritten digits, few labels
    python tools/ablate.py --suite coins --seeds 2    # box AP of the demo's detector

Every cell and seed leaves a file in --output; a run that was stopped goes on with those missing.
The table has the mean and the spread over seeds beside the paper's Top-1 on ImageNet, and whether
the cells differ by more than their seeds do (one-way analysis of variance). --blind prints only
that: so a task is chosen without seeing which method wins.
"""

import argparse
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from scipy import stats

from srvit_backbone.errors import InputError, run_program

ROOT = Path(__file__).parents[1]
FIGURES = Path(__file__).with_name("paper_figures.yaml")
# Organisations of Figure 3, from the depths of the units as the paper's models have them.
ORGANISATIONS: dict[str, Callable[[Sequence[int]], tuple[int, ...]]] = {
    "coarse": lambda depths: (sum(depths),),
    "fine": lambda depths: (1,) * sum(depths),
    "fine-to-coarse": lambda depths: tuple(sorted(depths)),
    "coarse-to-fine": lambda depths: tuple(sorted(depths, reverse=True)),
}
COINS_CONFIG = "detection/configs/mask_rcnn_srvit_demo.py"
COINS_UNITS = (3, 2, 1)
COINS_ITERATIONS = 200


# --- the grid -----------------------------------------------------------------------


def grid() -> dict[str, dict[str, Any]]:
    """Every cell by its label: SRViT's ``settings``, ``organisation`` and the paper's ``top1``."""
    paper = OmegaConf.to_container(OmegaConf.load(FIGURES))
    return {cell["label"]: cell for cell in paper["ablation_accuracy"] + paper["ablation"]}


def settings_of(cell: dict[str, Any], depths: Sequence[int]) -> dict[str, Any]:
    """Arguments of SRViT for a cell, in a model whose units have these depths."""
    organise = ORGANISATIONS[cell.get("organisation", "coarse-to-fine")]
    return {**cell["settings"], "unit_depths": organise(depths)}


# --- the suites: what a cell and a seed score ---------------------------------------


def digits(cell: dict[str, Any], seed: int, folder: Path) -> float:
    """Top-1 on test scenes of cluttered digits."""
    import torch

    from srvit_backbone.analysis import cluttered_digits

    torch.set_num_threads(1)
    depths = cluttered_digits.MODEL["unit_depths"]
    return cluttered_digits.train_and_test(settings_of(cell, depths), seed)


def coins_overrides(cell: dict[str, Any]) -> list[str]:
    """A cell as overrides of the demo's detector."""
    return [
        f"+model.backbone.net.{key}={json.dumps(value)}"
        for key, value in settings_of(cell, COINS_UNITS).items()
    ]


def coins(cell: dict[str, Any], seed: int, folder: Path) -> float:
    """Box AP of the demo's detector after a short training, by tools/train_net.py."""
    output = folder / "run"
    command = [
        *(sys.executable, "-W", "ignore", "tools/train_net.py", "--resume"),
        *("--config-file", COINS_CONFIG, f"train.output_dir={output.resolve()}"),
        *(f"train.seed={seed}", f"train.max_iter={COINS_ITERATIONS}"),
        f"train.eval_period={COINS_ITERATIONS}",
        *("train.prediction_sheet=0", *coins_overrides(cell)),
    ]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if process.returncode:
        raise InputError(f"{cell['label']}: {process.stderr.strip().splitlines()[-1]}")
    return json.loads((output / "metrics_final.json").read_text())["bbox"]["AP"]


SUITES = {"digits": (digits, "top-1, %"), "coins": (coins, "box AP")}


def task_of(suite: str) -> dict[str, Any]:
    """What all cells of a suite have in common; scores of another task are not mixed in."""
    if suite == "coins":
        return {"units": list(COINS_UNITS), "iterations": COINS_ITERATIONS}
    from srvit_backbone.analysis import cluttered_digits

    constants = {k: v for k, v in vars(cluttered_digits).items() if k.isupper()}
    return json.loads(json.dumps(constants))


# --- running ------------------------------------------------------------------------


def file_of(folder: Path, label: str, seed: int) -> Path:
    """Where a cell's score is kept."""
    return folder / f"{re.sub('[^a-z0-9]+', '-', label.lower())}-{seed}.json"


def run_cell(job: tuple[str, dict[str, Any], int, Path]) -> str:
    """Train one cell with one seed and keep its score."""
    suite, cell, seed, folder = job
    path = file_of(folder, cell["label"], seed)
    own = path.with_suffix("")
    start = time.monotonic()
    score = SUITES[suite][0](cell, seed, own)
    result = {
        "cell": cell,
        "task": task_of(suite),
        "seed": seed,
        "score": score,
        "seconds": time.monotonic() - start,
    }
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(result) + "\n")
    os.replace(unfinished, path)
    return f"{cell['label']}, seed {seed}"


def score_of(folder: Path, suite: str, cell: dict[str, Any], seed: int) -> float:
    """The kept score of a cell and seed.

    Raises:
        InputError: It was measured with other settings.
    """
    path = file_of(folder, cell["label"], seed)
    result = json.loads(path.read_text())
    if (result["cell"], result["task"]) != (cell, task_of(suite)):
        raise InputError(f"{path} is of other settings: delete it, or choose another --output")
    return result["score"]


def run_missing(jobs: list[tuple[str, dict, int, Path]], processes: int) -> None:
    """Run what has no file yet, several processes at a time, saying how far it is."""
    missing = []
    for suite, cell, seed, folder in jobs:
        if file_of(folder, cell["label"], seed).is_file():
            score_of(folder, suite, cell, seed)  # stops here if it is of other settings
        else:
            missing.append((suite, cell, seed, folder))
    print(f"{len(jobs)} trainings, {len(jobs) - len(missing)} of them done before", flush=True)
    if not missing:
        return
    # One thread each: many small models train fastest side by side. Set before torch is imported.
    os.environ["OMP_NUM_THREADS"] = "1"
    start = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for done, name in enumerate(pool.imap_unordered(run_cell, missing), 1):
            per_job = (time.monotonic() - start) / done
            left = timedelta(seconds=round(per_job * (len(missing) - done)))
            print(f"{done} of {len(missing)}: {name}, ETA {left}", flush=True)


# --- the table ----------------------------------------------------------------------


def separation(scores: dict[str, list[float]]) -> str:
    """Whether cells differ by more than seeds do."""
    if min(len(values) for values in scores.values()) < 2 or len(scores) < 2:
        return "Two cells and two seeds are needed to tell cells apart from seeds."
    test = stats.f_oneway(*scores.values())
    spread = statistics.mean(statistics.stdev(values) for values in scores.values())
    between = statistics.stdev(statistics.mean(values) for values in scores.values())
    verdict = "separate" if test.pvalue < 0.01 else "do NOT separate"
    return (
        f"The cells {verdict}: their means differ with a standard deviation of {between:.2f}, "
        f"the seeds of a cell with {spread:.2f}; F = {test.statistic:.1f}, p = {test.pvalue:.1e}."
    )


def table(cells: list[dict[str, Any]], scores: dict[str, list[float]], unit: str) -> str:
    """Markdown: a line a cell, ours beside the paper's."""
    base = next(iter(scores))
    paper_base = next(cell["top1"] for cell in cells if cell["label"] == base)
    lines = [
        f"| | {unit}, mean ± std | to {base} | paper, ImageNet Top-1 | to {base} |",
        "|---|---|---|---|---|",
    ]
    for cell in cells:
        values = scores[cell["label"]]
        mean = statistics.mean(values)
        deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
        paper = "not printed" if cell["top1"] is None else f"{cell['top1']:.2f}"
        known = None not in (cell["top1"], paper_base)
        to_base = f"{cell['top1'] - paper_base:+.2f}" if known else ""
        lines.append(
            f"| {cell['label']} | {mean:.1f}{deviation} | "
            f"{mean - statistics.mean(scores[base]):+.1f} | {paper} | {to_base} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", choices=SUITES, required=True)
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each cell")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--cells", nargs="+", help="labels of some cells; default all")
    parser.add_argument("--processes", type=int, help="at a time; default digits: CPUs, coins: 1")
    parser.add_argument("--output", type=Path, default=Path("output/ablation"))
    parser.add_argument("--blind", action="store_true", help="print the separation only")
    args = parser.parse_args()
    if args.seeds < 1:
        raise InputError("--seeds must be 1 or more")
    cells = grid()
    unknown = set(args.cells or ()) - set(cells)
    if unknown:
        raise InputError(f"no cell {', '.join(sorted(unknown))}: choose from {'; '.join(cells)}")
    chosen = [cell for label, cell in cells.items() if not args.cells or label in args.cells]
    if args.suite == "coins" and not (ROOT / "datasets/coins/train.json").is_file():
        raise InputError("no scenes: python tools/make_mini_dataset.py coins datasets/coins")
    folder = args.output / args.suite
    folder.mkdir(parents=True, exist_ok=True)
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    # Seed by seed, so that a run that was stopped has all cells alike.
    jobs = [(args.suite, cell, seed, folder) for seed in seeds for cell in chosen]
    processes = args.processes or (os.cpu_count() if args.suite == "digits" else 1)
    run_missing(jobs, processes)
    scores = {
        cell["label"]: [score_of(folder, args.suite, cell, seed) for seed in seeds]
        for cell in chosen
    }
    verdict = separation(scores)
    if args.blind:
        print(verdict)
        return
    text = f"{table(chosen, scores, SUITES[args.suite][1])}\n\n{verdict}\n"
    (folder / "table.md").write_text(text)
    print(f"\n{text}\nwritten to {folder / 'table.md'}")


if __name__ == "__main__":
    run_program(main)
