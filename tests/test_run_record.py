"""run.json and tools/compare_runs.py."""

import json
import shutil

import pytest
from conftest import assert_one_line_error, run_tool
from PIL import Image
from torch.utils.tensorboard import SummaryWriter

from srvit_backbone.errors import InputError
from srvit_backbone.training.run_record import (
    FILE,
    RunRecord,
    fingerprint,
    git_revision,
    read_record,
)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "one.png").write_bytes(b"123")
    (folder / "two.png").write_bytes(b"1234")
    (tmp_path / "notes.json").write_text("{}")
    return folder


def test_fingerprint_follows_the_data_and_not_their_place(data, tmp_path):
    notes = str(tmp_path / "notes.json")
    first = fingerprint(str(data), read=[notes])
    assert first["files"] == 2
    shutil.copytree(data, tmp_path / "copy")
    assert fingerprint(str(tmp_path / "copy"), read=[notes]) == first
    others = [first["sha256"]]
    (tmp_path / "notes.json").write_text("[]")
    others.append(fingerprint(str(data), read=[notes])["sha256"])
    (data / "two.png").write_bytes(b"12")
    others.append(fingerprint(str(data), read=[notes])["sha256"])
    (data / "two.png").rename(data / "three.png")
    others.append(fingerprint(str(data), read=[notes])["sha256"])
    assert len(set(others)) == 4


def record(folder, rate, resumed=False, weights=None):
    folder.mkdir(exist_ok=True)
    return RunRecord(
        folder,
        config={"optimizer": {"lr": rate, "betas": [0.9, 0.999]}, "sizes": [{"side": 1}]},
        seed=0,
        images_a_step=4,
        data={"train": {"files": 1, "sha256": "x"}},
        weights=weights,
        processes=1,
        resumed=resumed,
    )


def test_a_resumed_run_adds_a_session_and_keeps_its_first_weights(data, tmp_path):
    run = tmp_path / "run"
    weights = data / "two.png"
    record(run, 0.1, weights=weights)  # is cut off
    weights.unlink()
    record(run, 0.1, resumed=True, weights=weights).finish({"AP": float("nan"), "AP50": 3.0})
    content = json.loads((run / FILE).read_text(), parse_constant=pytest.fail)
    assert len(content["weights"]["sha256"]) == 64
    assert [session["wall_time_s"] is None for session in content["sessions"]] == [True, False]
    assert content["results"] == {"AP": None, "AP50": 3.0}
    assert content["sessions"][0]["git_revision"] == git_revision()
    # Started anew in the same folder, it is another run.
    record(run, 0.1)
    assert len(read_record(run)["sessions"]) == 1
    with pytest.raises(InputError, match=r"holds no run\.json"):
        read_record(data)


@pytest.fixture
def runs(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, rate in zip(folders, (0.1, 0.2), strict=True):
        record(folder, rate).finish({"AP": 10 * rate})
        writer = SummaryWriter(str(folder))
        for step in range(3):
            writer.add_scalar("total_loss", rate / (step + 1), step)
            writer.add_scalar("own", rate, step)
        writer.close()
    return folders


def test_differences_come_first_and_equal_settings_not_at_all(runs, tmp_path):
    output = tmp_path / "compared.png"
    process = run_tool("compare_runs.py", *runs, "--output", output)
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines()
    keys = [line.split()[0] for line in lines[2:-1]]
    assert lines[2].split()[1:] == ["0.1", "->", "0.2"]
    assert keys[0] == "config.optimizer.lr"
    assert keys[-1] == "results.AP"
    assert not {"config.optimizer.betas", "config.sizes.0.side", "seed"} & set(keys)
    one = Image.open(output).size
    run_tool("compare_runs.py", *runs, "--output", output, "--curves", "total_loss", "own")
    assert Image.open(output).width == 2 * one[0]


def test_what_cannot_be_compared_is_one_line(runs, tmp_path):
    compare = "compare_runs.py"
    process = run_tool(compare, *runs, "--output", tmp_path / "x.png", "--curves", "AP75")
    assert_one_line_error(process, "no curve AP75", "own, total_loss")
    assert_one_line_error(run_tool(compare, tmp_path, runs[0]), "holds no run.json")
    assert_one_line_error(run_tool(compare, *runs, "--output", "x.gif"), ".png or .pdf")
