"""The paper's ablations (Figure 3, Tables 5 and 6) at small scale: the grid, and its trainings.

Every cell and seed leaves a file; what was stopped goes on with those missing.
"""

import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from srvit_backbone.errors import InputError
from srvit_backbone.studies.paper_figures import paper_figures

ROOT = Path(__file__).parents[2]
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
    paper = paper_figures()
    return {cell["label"]: cell for cell in paper["ablation_accuracy"] + paper["ablation"]}


def settings_of(cell: dict[str, Any], depths: Sequence[int]) -> dict[str, Any]:
    """Arguments of SRViT for a cell, in a model whose units have these depths."""
    organise = ORGANISATIONS[cell.get("organisation", "coarse-to-fine")]
    return {**cell["settings"], "unit_depths": organise(depths)}


# --- the suites: what a cell and a seed score ---------------------------------------


def digits(cell: dict[str, Any], seed: int, folder: Path) -> float:
    """Top-1 on test scenes of cluttered digits."""
    import torch

    from srvit_backbone.studies import cluttered_digits

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
    from srvit_backbone.studies import cluttered_digits

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


def chosen_cells(labels: list[str] | None) -> list[dict[str, Any]]:
    """The cells of these labels, all by default.

    Raises:
        InputError: There is no such cell.
    """
    cells = grid()
    unknown = set(labels or ()) - set(cells)
    if unknown:
        raise InputError(f"no cell {', '.join(sorted(unknown))}: choose from {'; '.join(cells)}")
    return [cell for label, cell in cells.items() if not labels or label in labels]


def ablate(
    suite: str, cells: list[dict[str, Any]], seeds: range, folder: Path, processes: int | None
) -> dict[str, list[float]]:
    """Scores of every cell, a value a seed; what has no file yet is trained.

    Args:
        suite: A key of SUITES.
        cells: From ``chosen_cells``.
        seeds: Trainings of each.
        folder: Where scores are kept.
        processes: At a time; None for one a CPU (digits), or one (coins).

    Raises:
        InputError: The suite's data are missing, or a kept score is of other settings.
    """
    if not seeds:
        raise InputError("--seeds must be 1 or more")
    if suite == "coins" and not (ROOT / "datasets/coins/train.json").is_file():
        raise InputError("no scenes: python tools/make_mini_dataset.py coins datasets/coins")
    folder.mkdir(parents=True, exist_ok=True)
    # Seed by seed, so that a run that was stopped has all cells alike.
    jobs = [(suite, cell, seed, folder) for seed in seeds for cell in cells]
    run_missing(jobs, processes or (suite == "digits" and os.cpu_count()) or 1)
    return {
        cell["label"]: [score_of(folder, suite, cell, seed) for seed in seeds] for cell in cells
    }
