"""tools/check_dataset.py: each way in which a data set is broken is named, and coins are not."""

import json
import shutil

import numpy as np
import pytest
from conftest import own_data, run_tool
from PIL import Image

from srvit_backbone.own_data.coco import check_coco
from srvit_backbone.own_data.folders import check_classes, check_masks


def findings_of(folder):
    return check_coco(
        (folder / "train.json", folder / "train"), (folder / "val.json", folder / "val")
    )


@pytest.fixture
def broken(coins, tmp_path):
    """A copy of coins to break."""
    folder = tmp_path / "broken"
    shutil.copytree(coins, folder)
    return folder


def edit(change):
    """Break the training json: ``change`` gets its content."""

    def apply(folder):
        path = folder / "train.json"
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return apply


def annotation(**changes):
    return edit(lambda content: content["annotations"][0].update(changes))


def rewrite(save):
    """Break the first training picture: ``save`` gets the picture and its path."""

    def apply(folder):
        path = folder / "train" / "0000.png"
        save(Image.open(path).convert("RGB"), path)

    return apply


def turn(picture, path):
    exif = picture.getexif()
    exif[0x0112] = 6
    picture.save(path, exif=exif)


def sixteen_bits(picture, path):
    Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 256).save(path)


def other_categories(folder):
    path = folder / "val.json"
    content = json.loads(path.read_text())
    content["categories"][0]["name"] = "another"
    path.write_text(json.dumps(content))


BROKEN = {
    "no json": (lambda f: (f / "train.json").write_text("{"), "cannot be read as json"),
    "no list": (edit(lambda c: c.pop("categories")), "no list categories"),
    "missing picture": (lambda f: (f / "train/0000.png").unlink(), "is missing"),
    "damaged picture": (
        lambda f: (f / "train/0000.png").write_bytes((f / "train/0000.png").read_bytes()[:3000]),
        "cannot be opened",
    ),
    "size": (edit(lambda c: c["images"][0].update(width=7)), "the json says (7,"),
    "16 bits": (rewrite(sixteen_bits), "not 8 bits a channel"),
    "turned": (rewrite(turn), "EXIF orientation 6"),
    "box outside": (annotation(bbox=[180, 10, 50, 20]), "reaches outside"),
    "box of corners": (annotation(bbox=[50, 50, 0, 20]), "has no area"),
    "box not a number": (annotation(bbox=[1, 2, float("nan"), 4]), "is not [x, y, width, height]"),
    "no polygon": (annotation(segmentation=[]), "segmentation is empty"),
    "two points": (annotation(segmentation=[[1, 1, 5, 5]]), "three points or more"),
    "flat polygon": (annotation(segmentation=[[1, 1, 5, 5, 9, 9]]), "has no area"),
    "RLE size": (annotation(segmentation={"size": [5, 5], "counts": "1"}), "its RLE is of size"),
    "unknown class": (annotation(category_id=9), "category_id 9 is not among"),
    "unknown image": (annotation(image_id=999), "image_id 999 is not among"),
    "ids twice": (annotation(id=2), "id 2 is used 2 times"),
    "other categories": (other_categories, "has other categories"),
    "in both splits": (
        lambda f: shutil.copy(f / "train/0003.png", f / "val/0001.png"),
        "is the training picture",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_each_break_of_a_coco_set_is_named(broken, kind):
    break_it, words = BROKEN[kind]
    break_it(broken)
    problems = [str(finding) for finding in findings_of(broken) if not finding.harmless]
    assert problems
    assert all(words in problem for problem in problems), problems


def test_coins_are_without_findings(coins):
    assert findings_of(coins) == []
    splits = [
        (coins / "ade/images" / split, coins / "ade/annotations" / split)
        for split in ("training", "validation")
    ]
    assert check_masks(*splits, num_classes=4) == []


def test_grey_pictures_and_pictures_without_objects_are_notes(broken):
    rewrite(lambda picture, path: picture.convert("L").save(path))(broken)
    edit(lambda c: c["annotations"].clear())(broken)
    findings = findings_of(broken)
    assert all(finding.harmless for finding in findings)
    assert {"is grey" in f.what or "no annotation" in f.what for f in findings} == {True}
    assert len(findings) == 2


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (None, "is missing"),
        (np.full((192, 192), 7, np.uint8), "has ids [7], but there are 4 classes"),
        (np.zeros((10, 192), np.uint8), "its picture (192, 192)"),
        (np.zeros((192, 192, 3), np.uint8), "has several channels"),
        (np.full((192, 192), 255, np.uint8), "labels no pixel"),
    ],
)
def test_each_break_of_a_mask_is_named(broken, labels, words):
    path = broken / "ade/annotations/training/0000.png"
    path.unlink()
    if labels is not None:
        Image.fromarray(labels).save(path)
    splits = [
        (broken / "ade/images" / split, broken / "ade/annotations" / split)
        for split in ("training", "validation")
    ]
    findings = check_masks(*splits, num_classes=4)
    assert len(findings) == 1
    assert words in findings[0].what


def test_class_folders(tmp_path):
    rng = np.random.default_rng(0)
    for split in ("train", "val"):
        for label in ("a", "b"):
            (tmp_path / split / label).mkdir(parents=True)
            pixels = rng.integers(0, 255, (9, 9, 3))
            Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / split / label / "0.png")
    assert check_classes(tmp_path / "train", tmp_path / "val") == []
    shutil.copy(tmp_path / "train/a/0.png", tmp_path / "val/b/1.png")
    (tmp_path / "val" / "c").mkdir()
    found = [str(finding) for finding in check_classes(tmp_path / "train", tmp_path / "val")]
    assert len(found) == 3
    for words in ("is the training picture", "holds no pictures", "other classes"):
        assert sum(words in line for line in found) == 1


def test_exit_status_tells(coins, broken):
    options = [(f"--{key.replace('_', '-')}", str(path)) for key, path in own_data(coins).items()]
    process = run_tool("check_dataset.py", "coco", *[word for pair in options for word in pair])
    assert process.returncode == 0, process.stderr
    assert process.stdout == "0 problems, 0 notes\n"
    process = run_tool("check_dataset.py", "classes", broken / "nowhere")
    assert process.returncode == 1
    assert "holds no class folders" in process.stdout
