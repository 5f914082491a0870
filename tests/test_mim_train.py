"""`mim train mmsegmentation` as a user runs it: from an empty folder, with an installed wheel."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from conftest import ROOT, run_tool
from mmengine.config import Config, DictAction
from mmengine.registry import RUNNERS, init_default_scope
from mmengine.runner import Runner
from PIL import Image

from srvit_backbone.errors import InputError
from srvit_backbone.openmmlab import fit as mm_fit
from srvit_backbone.openmmlab.runner import one_line_errors

SHORT = (
    "train_cfg.max_iters=6",
    "train_cfg.val_interval=6",
    "param_scheduler.0.end=2",
    "param_scheduler.1.begin=2",
    "param_scheduler.1.end=6",
    "default_hooks.checkpoint.interval=2",
    "default_hooks.logger.interval=1",
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package from a wheel: its folder, in front of the editable install."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    options = ["--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "wheel", *options, "-w", folder, source], check=True)
    wheel = next(folder.glob("*.whl"))
    subprocess.run([*pip, "install", *options, "--target", folder / "site", wheel], check=True)
    return folder / "site"


def arguments(installed, work_dir, *options, flags=()):
    config = installed / "srvit_backbone/configs/segmentation/upernet_srvit_demo.py"
    mim = Path(sys.executable).with_name("mim")
    return [
        *(str(mim), "train", "mmsegmentation", str(config), "--gpus", "0"),
        *("--work-dir", str(work_dir), *flags),
        *("--cfg-options", *SHORT, *options),
    ]


def environment(installed, coins):
    return {
        **os.environ,
        "PYTHONPATH": str(installed),
        "PYTHONWARNINGS": "ignore",
        "COINS": str(coins / "ade"),
    }


def train(installed, coins, folder, *options, **more):
    return subprocess.run(
        arguments(installed, folder / "work", *options, **more),
        cwd=folder,
        env=environment(installed, coins),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def run(installed, coins, tmp_path_factory):
    """Six iterations, never interrupted."""
    folder = tmp_path_factory.mktemp("run")
    process = train(installed, coins, folder)
    assert process.returncode == 0, process.stdout + process.stderr
    return folder / "work", process.stdout + process.stderr


def train_here(coins, work_dir, *options, resume=False):
    """What mim's train.py does, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COINS", str(coins / "ade"))
        config = Config.fromfile(ROOT / "segmentation/configs/upernet_srvit_demo.py")
    for key, _, value in (option.partition("=") for option in (*SHORT, *options)):
        config.merge_from_dict({key: DictAction._parse_iterable(value)})
    config.update(work_dir=str(work_dir), resume=resume)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_line_errors, "strict", True)
        RUNNERS.build(config).train()


def load(path):
    return torch.load(path, weights_only=False)


def test_run_leaves_what_it_promises(run, coins, tmp_path):
    work, log = run
    assert "mIoU" in json.loads((work / "metrics_final.json").read_text())
    assert Image.open(work / "predictions.png").width > 480
    assert list(work.glob("best_mIoU_*.pth"))
    assert list(work.rglob("events.out.tfevents.*"))
    record = json.loads((work / "run.json").read_text())
    assert record["config"]["train_cfg"]["max_iters"] == 6
    assert (record["seed"], record["images_a_step"], record["weights"]) == (0, 4, None)
    assert record["data"]["train"]["files"] == 2 * 12
    assert record["results"] == json.loads((work / "metrics_final.json").read_text())
    checkpoint = work / "iter_6.pth"
    process = run_tool(
        "demo.py",
        *("--config-file", work / "upernet_srvit_demo.py", "--weights", checkpoint),
        *("--input", coins / "coins.png", "--output", tmp_path / "drawn.png"),
    )
    assert process.returncode == 0, process.stderr
    width, height = Image.open(coins / "coins.png").size
    drawn = Image.open(tmp_path / "drawn.png")
    assert drawn.width == 1000
    assert drawn.height > 1000 * height / width  # the picture, and its legend below


def test_backbone_of_a_run_loads_elsewhere_safely(run):
    """Field report 11: MMEngine's checkpoints hold log buffers, which are not executed."""
    from srvit_backbone import VARIANTS, SRViT, load_checkpoint

    model = SRViT(img_size=192, num_classes=0, **VARIANTS["srvit_nano_t3"])
    report = load_checkpoint(model, run[0] / "iter_6.pth")
    assert report.initialised == []
    state = load(run[0] / "iter_6.pth")["state_dict"]
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[f"backbone.{name}"]), name


def test_killed_and_resumed_run_ends_with_the_same_weights(installed, coins, run, tmp_path):
    """The uninterrupted run was without loading workers: they change nothing."""
    options = ["train_dataloader.num_workers=2"]
    process = subprocess.Popen(
        arguments(installed, tmp_path / "work", *options),
        cwd=tmp_path,
        env=environment(installed, coins),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    marker = tmp_path / "work" / "last_checkpoint"
    deadline = time.monotonic() + 120
    while not marker.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not marker.read_text().endswith("iter_6.pth")
    resumed = train(installed, coins, tmp_path, *options, flags=["--resume"])
    assert resumed.returncode == 0, resumed.stderr
    sessions = json.loads((tmp_path / "work" / "run.json").read_text())["sessions"]
    assert [session["wall_time_s"] is None for session in sessions] == [True, False]
    first, second = load(tmp_path / "work" / "iter_6.pth"), load(run[0] / "iter_6.pth")
    for name, value in second["state_dict"].items():
        assert torch.equal(first["state_dict"][name], value), name
    rates = [[g["lr"] for g in c["optimizer"]["param_groups"]] for c in (first, second)]
    assert rates[0] == rates[1]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("train_dataloader.batch_size=1", "a batch of one cannot train"),
        ("model.auxiliary_head.num_classes=7", "auxiliary_head.num_classes=7, but the data set"),
        (
            "train_dataloader.dataset.data_root=nowhere",
            "no folder nowhere/images/training: set SEG_DATA",
        ),
    ],
)
def test_runs_that_cannot_work_stop_with_a_reason(coins, tmp_path, option, words):
    with pytest.raises(InputError, match=words):
        train_here(coins, tmp_path, option)
    assert not list(tmp_path.rglob("*.pth"))


def test_another_schedule_does_not_resume(coins, run, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "iter_6.pth").write_bytes((run[0] / "iter_6.pth").read_bytes())
    (work / "last_checkpoint").write_text(str(work / "iter_6.pth"))
    options = ("train_cfg.max_iters=12", "param_scheduler.1.end=12")
    with pytest.raises(InputError, match="schedule to iteration 6, the config has 12"):
        train_here(coins, work, *options, resume=True)
    # What the message proposes works.
    weights = f"load_from={work / 'iter_6.pth'}"
    train_here(coins, tmp_path / "more", *options, weights)
    assert (tmp_path / "more" / "iter_12.pth").is_file()


def test_a_run_is_fitted_to_another_batch_and_a_limit_of_memory(coins, tmp_path, capsys):
    """Twice the batch in four parts: half as many steps, an iteration for every part."""
    config = Config.fromfile(ROOT / "segmentation/configs/upernet_srvit_demo.py")
    init_default_scope(config.default_scope)
    limit = mm_fit.estimator(config)(2, "store", True) / 0.9 / 1e6 + 1
    options = ("fit.batch=8", f"fit.memory={limit:.0f}MB")
    work = tmp_path / "work"
    train_here(coins, work, *options)
    printed = capsys.readouterr().out
    for change in ("accumulative_counts  1 -> 4", "train_cfg.max_iters                6 -> 12"):
        assert change in printed
    assert (work / "last_checkpoint").read_text().endswith("iter_12.pth")
    state = load(work / "iter_12.pth")
    # AdamW counts steps: those of whole batches.
    assert {int(values["step"]) for values in state["optimizer"]["state"].values()} == {3}
    # The saved config repeats the run.
    saved = Config.fromfile(work / "upernet_srvit_demo.py")
    assert (saved.train_dataloader.batch_size, saved.fit.batch) == (2, 0)


def runner_from(run, tmp_path, classes, **settings):
    """MMEngine's runner of the same config, for data of the given classes."""
    config = Config.fromfile(run[0] / "upernet_srvit_demo.py")
    for loader in ("train_dataloader", "val_dataloader", "test_dataloader"):
        config[loader].dataset.metainfo.classes = classes
    config.update(work_dir=str(tmp_path), load_from=str(run[0] / "iter_6.pth"), **settings)
    runner = Runner.from_cfg(config)
    if settings.get("resume") is not None:
        runner._train_loop = runner.build_train_loop(runner._train_loop)
    return runner


def test_class_heads_of_other_classes_start_anew(run, tmp_path):
    trained = load(run[0] / "iter_6.pth")["state_dict"]
    for classes, kept in (
        (["background", "large coin", "small coin"], True),
        (["background", "small coin", "large coin"], False),
    ):
        runner = runner_from(run, tmp_path, classes, resume=False)
        before = {name: value.clone() for name, value in runner.model.state_dict().items()}
        runner.load_or_resume()
        heads = 0
        for name, value in runner.model.state_dict().items():
            head = ".conv_seg." in name
            heads += head
            assert torch.equal(value, (before if head and kept else trained)[name]), name
        assert heads == 4


@pytest.mark.parametrize("resume", [True, None])
def test_a_run_is_not_resumed_or_tested_on_other_classes(run, tmp_path, resume):
    classes = ["background", "large coin", "small coin"]
    settings = {} if resume is None else {"resume": resume}
    runner = runner_from(run, tmp_path, classes, **settings)
    with pytest.raises(InputError, match="small coin in the file is large coin in the data and 1"):
        runner.load_or_resume()


@pytest.mark.slow
def test_demo_config_learns_to_segment_coins(tmp_path):
    folder = tmp_path / "datasets" / "coins"
    assert run_tool("make_mini_dataset.py", "coins", folder).returncode == 0
    config = ROOT / "segmentation/configs/upernet_srvit_demo.py"
    mim = Path(sys.executable).with_name("mim")
    subprocess.run(
        [mim, "train", "mmsegmentation", config, "--gpus", "0", "--work-dir", "work"],
        cwd=tmp_path,
        check=True,
    )
    metrics = json.loads((tmp_path / "work" / "metrics_final.json").read_text())
    assert metrics["mIoU"] >= 85
