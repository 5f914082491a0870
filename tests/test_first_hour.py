"""The commands of docs/first_hour.md, as they stand, from a fresh checkout with data in data/."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, run_tool
from PIL import Image

PAGE = (ROOT / "docs" / "first_hour.md").read_text()
COMMANDS, ON_A_GPU, _, _ = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
VENV = Path(sys.prefix)


def lines(block):
    """Commands of a block, continuation lines joined."""
    return [line for line in block.replace("\\\n", " ").splitlines() if line.strip()]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the repository's files, set up already, with scenes of coins as the user's data."""
    folder = tmp_path_factory.mktemp("user") / "srvit-backbone"
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in filter(lambda name: (ROOT / name).is_file(), names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    # `make setup` is what made the environment this test runs in: here it finds its work done.
    (folder / ".venv").symlink_to(VENV)
    for name in ("setup.py", "detection/requirements-detectron2.txt"):
        os.utime(folder / name, (0, 0))
    process = run_tool("make_mini_dataset.py", "coins", folder / "data")
    assert process.returncode == 0, process.stderr
    return folder


def run(command, folder):
    """A command in the checkout; returns what it printed."""
    process = subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, check=False, timeout=1200
    )
    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-3000:]
    return process.stdout + process.stderr


@pytest.mark.slow
@pytest.mark.skipif(not (VENV / ".installed").exists(), reason="not the environment of make setup")
def test_at_most_five_commands_lead_to_a_trained_detector(checkout):
    commands = lines(COMMANDS)
    assert len(commands) <= 5
    for command in commands:
        run(command, checkout)
    output = checkout / "output"
    assert json.loads((output / "first/metrics_final.json").read_text())["bbox"]["AP50"] >= 60
    assert Image.open(output / "samples.png").width == 4 * 480
    pictures = {path.stem for path in (checkout / "data/val").iterdir()}
    assert {path.stem for path in (output / "first_drawn").iterdir()} == pictures


@pytest.mark.slow
def test_the_papers_model_is_fitted_as_the_page_prints(checkout):
    """Up to where the run would start, which wants weights that are not there."""
    estimate, train = lines(ON_A_GPU)
    assert "training, recompute" in run(estimate.replace("python", sys.executable, 1), checkout)
    command = train.replace("python", sys.executable, 1).replace("--num-gpus 1", "")
    process = subprocess.run(
        command, shell=True, cwd=checkout, capture_output=True, text=True, check=False
    )
    assert process.returncode == 1
    assert "error: no initial weights at deit_small_patch16_224" in process.stderr
    table = re.search(r"^To fit.*?(?=^```)", PAGE, re.MULTILINE | re.DOTALL)[0]
    # A GPU's mixed precision needs less.
    settings = table[: table.index("  estimated")]
    assert settings in process.stdout
