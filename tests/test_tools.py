"""tools/make_mini_dataset.py and tools/doctor.py."""

import hashlib
import importlib.util

import numpy as np
import pytest
from conftest import ROOT, assert_one_line_error, run_tool
from packaging.version import Version
from PIL import Image
from pycocotools.coco import COCO


def digest(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert files
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def make(kind, folder, *options):
    return run_tool("make_mini_dataset.py", kind, folder, *options)


def test_same_seed_same_bytes(coins, tmp_path):
    few = ("--train-scenes", 12, "--val-scenes", 4)
    assert make("coins", tmp_path / "again", *few).returncode == 0
    assert digest(tmp_path / "again") == digest(coins)
    assert make("coins", tmp_path / "other", *few, "--seed", 1).returncode == 0
    assert digest(tmp_path / "other")["train/0000.png"] != digest(coins)["train/0000.png"]


@pytest.mark.parametrize(("split", "ade_split"), [("train", "training"), ("val", "validation")])
def test_boxes_masks_and_label_maps_agree(coins, split, ade_split):
    coco = COCO(str(coins / f"{split}.json"))
    assert coco.getAnnIds()
    for image in coco.loadImgs(coco.getImgIds()):
        labels = np.asarray(Image.open(coins / "ade/annotations" / ade_split / image["file_name"]))
        assert set(np.unique(labels)) <= {1, 2, 3}
        covered = np.zeros(labels.shape, bool)
        for note in coco.loadAnns(coco.getAnnIds(image["id"])):
            mask = coco.annToMask(note).astype(bool)
            covered |= mask
            assert abs(mask.sum() - note["area"]) <= 0.05 * note["area"]
            # The outline is simplified by a fraction of a pixel: nearly all of it is of its class.
            assert (labels[mask] == note["category_id"] + 1).mean() > 0.97
            rows, columns = np.nonzero(mask.any(1))[0], np.nonzero(mask.any(0))[0]
            x, y, width, height = note["bbox"]
            box = [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
            assert np.abs(np.array(box) - [x, y, x + width, y + height]).max() <= 1
        assert (labels[~covered] == 1).mean() > 0.99


def test_digits_are_all_there_and_split_by_class(tmp_path):
    process = make("digits", tmp_path / "digits")
    assert process.returncode == 0, process.stderr
    names = {
        split: {path.name for path in (tmp_path / "digits" / split).rglob("*.png")}
        for split in ("train", "val")
    }
    assert not names["train"] & names["val"]
    assert len(names["train"] | names["val"]) == 1797
    assert 0.18 < len(names["val"]) / 1797 < 0.21
    assert len(list((tmp_path / "digits" / "val").iterdir())) == 10


def test_a_data_set_is_never_overwritten(coins, tmp_path):
    before = digest(coins)
    assert_one_line_error(make("coins", coins), "exists already")
    assert digest(coins) == before


def test_doctor_knows_the_pairs_that_do_not_work():
    spec = importlib.util.spec_from_file_location("doctor", ROOT / "tools" / "doctor.py")
    doctor = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(doctor)

    def problems(**versions):
        return doctor.known_problems({k: (k, Version(v)) for k, v in versions.items()})

    assert problems(torch="2.14.1", torchvision="0.29.1", numpy="2.4", setuptools="80") == []
    assert "torchvision==0.29" in problems(torch="2.14.1", torchvision="0.28.0")[0]
    assert "numpy<2" in problems(torch="2.2.0", numpy="2.1")[0]
    assert "setuptools<81" in problems(detectron2="0.7.2", setuptools="82.0")[0]
    assert "mmcv==2.1.0" in problems(mmsegmentation="1.2.2", mmcv="2.2.0")[0]


def test_doctor_finds_all_parts_working_here():
    process = run_tool("doctor.py")
    assert process.returncode == 0, process.stdout
    assert "does not" not in process.stdout
    for part in ("backbone (timm)", "detection (Detectron2)", "segmentation (MMSegmentation)"):
        assert part in process.stdout
