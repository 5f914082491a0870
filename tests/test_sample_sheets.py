"""check_dataset.py --sheet: the pictures drawn are the training samples, with their labels."""

import json
import shutil

import numpy as np
import pytest
from conftest import ROOT, load_tool, own_data, run_tool
from PIL import Image

from srvit_backbone.any_model.samples import SHEETS

CONFIGS = {
    "objects": "detection/configs/mask_rcnn_srvit_demo.py",
    "masks": "segmentation/configs/upernet_own_data.py",
}


def sheet(monkeypatch, kind, folder, *options):
    """The sheet of a data set; Detectron2 draws colours from NumPy's state."""
    if kind == "objects":
        pairs = own_data(folder).items()
        where = [word for key, path in pairs for word in (f"--{key.replace('_', '-')}", path)]
    elif kind == "masks":
        where = [folder / "ade", "--classes", "background,a,b,c"]
    else:
        where = [folder]
    config = ["--config", str(ROOT / CONFIGS[kind])] if kind in CONFIGS else []
    monkeypatch.delenv("SEG_CLASSES", raising=False)
    np.random.seed(0)  # noqa: NPY002
    tool = load_tool("check_dataset.py")
    return np.asarray(SHEETS[kind](tool.parse([kind, *map(str, where), *config, *options])))


def changed_tiles(first, second, side):
    """(row, column) of the tiles in which two sheets differ."""
    assert first.shape == second.shape
    rows, columns = first.shape[0] // side, first.shape[1] // side
    return [
        (row, column)
        for row in range(rows)
        for column in range(columns)
        if (
            first[row * side : (row + 1) * side, column * side : (column + 1) * side]
            != second[row * side : (row + 1) * side, column * side : (column + 1) * side]
        ).any()
    ]


def rename_class(folder):
    """The first picture's first coin becomes one of the other class."""
    path = folder / "train.json"
    content = json.loads(path.read_text())
    note = next(n for n in content["annotations"] if n["image_id"] == content["images"][0]["id"])
    note["category_id"] = 3 - note["category_id"]
    path.write_text(json.dumps(content))


def relabel(folder):
    """The first mask gets one class everywhere."""
    path = folder / "ade/annotations/training/0000.png"
    Image.fromarray(np.full_like(np.asarray(Image.open(path)), 3)).save(path)


@pytest.mark.parametrize(("kind", "change"), [("objects", rename_class), ("masks", relabel)])
def test_a_label_changes_its_own_sample(coins, tmp_path, monkeypatch, kind, change):
    copy = tmp_path / "coins"
    shutil.copytree(coins, copy)
    before = sheet(monkeypatch, kind, copy)
    assert np.array_equal(sheet(monkeypatch, kind, copy), before)
    assert before.shape == (3 * 480, 4 * 480, 3)  # twelve scenes, four in a row
    change(copy)
    assert changed_tiles(before, sheet(monkeypatch, kind, copy), 480) == [(0, 0)]


def test_a_sheet_of_class_folders_names_them(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for split in ("train", "val"):
        for label in ("a", "b"):
            (tmp_path / split / label).mkdir(parents=True)
            for number in range(2):
                pixels = rng.integers(0, 255, (64, 64, 3)).astype(np.uint8)
                Image.fromarray(pixels).save(tmp_path / split / label / f"{number}.png")
    before = sheet(monkeypatch, "classes", tmp_path)
    for split in ("train", "val"):
        (tmp_path / split / "b").rename(tmp_path / split / "c")
    after = sheet(monkeypatch, "classes", tmp_path)
    # Pictures a/0, a/1, b/0, b/1 in one row: those of b have another name below, and only that.
    assert changed_tiles(before, after, 240) == [(0, 2), (0, 3)]
    assert np.array_equal(before[:220], after[:220])


def test_the_command_writes_the_sheet(coins, tmp_path):
    output = tmp_path / "new" / "sheet.png"
    options = ["--config", CONFIGS["masks"], "--sheet", output]
    process = run_tool("check_dataset.py", "masks", coins / "ade", "--classes", "4", *options)
    assert process.returncode == 0, process.stderr
    assert f"Samples: {output}" in process.stdout
    assert Image.open(output).width == 4 * 480
    process = run_tool("check_dataset.py", "masks", coins / "ade", "--classes", "4", "--sheet", "x")
    assert process.returncode == 1
    assert "must end in .png" in process.stderr
