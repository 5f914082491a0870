import subprocess
import sys
from pathlib import Path

import pytest
import torch

from srvit_backbone import SRViT

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(0)


@pytest.fixture
def tiny():
    """Builds small models: width 32, units (2, 1), 4 x 4 grid."""

    def build(**overrides):
        torch.manual_seed(0)
        settings = {
            "img_size": 64,
            "num_classes": 5,
            "embed_dim": 32,
            "num_heads": 2,
            "unit_depths": (2, 1),
            "init": "fan_in",
        }
        return SRViT(**{**settings, **overrides})

    return build


def run_tool(name, *arguments, cwd=ROOT, env=None, timeout=300):
    """Run a program of tools/ as a user does."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(ROOT / "tools" / name), *map(str, arguments)],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def assert_one_line_error(process, *words):
    """The program failed with one line that names what is wrong, and no traceback."""
    lines = process.stderr.strip().splitlines()
    assert process.returncode == 1, process.stdout[-2000:] + process.stderr[-2000:]
    assert "Traceback" not in process.stderr + process.stdout
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == 1, process.stderr
    for word in words:
        assert word in errors[0], errors[0]


@pytest.fixture(scope="session")
def coins(tmp_path_factory):
    """The coins data set with few scenes."""
    folder = tmp_path_factory.mktemp("data") / "coins"
    process = run_tool(
        "make_mini_dataset.py", "coins", folder, "--train-scenes", 12, "--val-scenes", 4
    )
    assert process.returncode == 0, process.stderr
    return folder


def own_data(coins):
    """The four paths by which a detector's config takes data of its own."""
    return {
        "train_json": coins / "train.json",
        "train_images": coins / "train",
        "val_json": coins / "val.json",
        "val_images": coins / "val",
    }
