import contextlib
import functools
import importlib.util
import io
import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from srvit_backbone import SRViT
from srvit_backbone.errors import run_program

ROOT = Path(__file__).parents[1]


# pytest-xdist runs one worker a core; processes that tests start are to compute the same.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)


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


@dataclass
class Finished:
    """What a program left: as subprocess.CompletedProcess has it."""

    returncode: int
    stdout: str
    stderr: str


def run_tool(name, *arguments, env=None):
    """A program of tools/ in this process, which has imported everything already.

    Args:
        env: Environment variables to set beside those there are.
    """
    tool = load_tool(name)
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("ignore")
        patch.chdir(ROOT)
        patch.setattr(sys, "argv", [f"tools/{name}", *map(str, arguments)])
        for key, value in (env or {}).items():
            patch.setenv(key, str(value))
        try:
            run_program(tool.main, tool.parse([*map(str, arguments)]))
        except SystemExit as end:
            code = end.code
            if isinstance(code, str):
                err.write(f"{code}\n")
                code = 1
    return Finished(code or 0, out.getvalue(), err.getvalue())


@functools.cache
def load_tool(name):
    """A program of tools/ as a module."""
    path = ROOT / "tools" / name
    spec = importlib.util.spec_from_file_location(f"tools_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def start_tool(name, *arguments, cwd=ROOT, env=None, timeout=300):
    """A program of tools/ as a user starts it: an interpreter of its own."""
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / name), *map(str, arguments)],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def assert_quiet(process):
    """No warning in what a program printed."""
    lines = (process.stdout + process.stderr).splitlines()
    assert [line for line in lines if "Warning" in line or "Could not import" in line] == []


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


def register(coins, folder):
    """The coins as "own_train" and "own_val" of Detectron2; returns the class names."""
    from srvit_backbone.detectron2.data import register_own_data
    from srvit_backbone.own_data.detection import read_detection

    data = read_detection({key: str(path) for key, path in own_data(coins).items()})
    data.findings.stop_on_problems()
    register_own_data(data, folder)
    data.save(folder)
    return data.classes


def own_data(coins):
    """The four paths by which a detector's config takes data of its own."""
    return {
        "train_json": coins / "train.json",
        "train_images": coins / "train",
        "val_json": coins / "val.json",
        "val_images": coins / "val",
    }
