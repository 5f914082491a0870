"""Own data, the training stream and what the mapper makes of odd annotations and pixels."""

import itertools
import json

import numpy as np
import pytest
import torch
from conftest import ROOT, register
from detectron2.config import LazyConfig, instantiate
from detectron2.data import DatasetCatalog
from detectron2.evaluation import COCOEvaluator
from detectron2.structures import Boxes, BoxMode, Instances
from PIL import Image
from pycocotools import mask as coco_mask
from timm.data import create_transform, resolve_data_config

import srvit_backbone  # noqa: F401  registers the variants
from srvit_backbone.detectron2.config import prepare_data, read_own_data
from srvit_backbone.detectron2.data import check_registered
from srvit_backbone.detectron2.loader import SeededSamples, build_train_loader
from srvit_backbone.detectron2.mapper import Mapper
from srvit_backbone.errors import InputError
from srvit_backbone.own_data.detection import read_detection

CONFIG = str(ROOT / "detection" / "configs" / "mask_rcnn_srvit_s_t3.py")
DEMO = str(ROOT / "detection" / "configs" / "mask_rcnn_srvit_demo.py")


# --- the stream ---------------------------------------------------------------------


def noisy(entry):
    """A mapper that draws from all three generators."""
    import random

    return {
        "index": entry["index"],
        "noise": (np.random.random(), random.random(), float(torch.rand(()))),
    }


def stream(start, batches, workers=0, seed=0):
    entries = [{"index": i, "file_name": str(i)} for i in range(7)]
    loader = build_train_loader(
        entries, mapper=noisy, total_batch_size=2, num_workers=workers, seed=seed, start_iter=start
    )
    iterator = iter(loader)
    return [sample for _ in range(batches) for sample in next(iterator)]


def test_stream_continues_where_it_was_with_any_workers():
    whole = stream(0, 14)
    assert whole == stream(0, 14, workers=2)
    assert whole[2 * 5 :] == stream(5, 9)
    assert whole[2 * 5 :] == stream(5, 9, workers=2)
    # Each epoch shows every image once, in an order and with augmentations of its own.
    epochs = [whole[i : i + 7] for i in range(0, 28, 7)]
    orders = [tuple(sample["index"] for sample in epoch) for epoch in epochs]
    assert all(sorted(order) == list(range(7)) for order in orders)
    assert len(set(orders)) == len(orders)
    assert len({sample["noise"] for sample in whole}) == 28
    assert whole != stream(0, 14, seed=1)


def test_loading_leaves_the_models_randomness_alone():
    samples = SeededSamples([{"index": 0, "file_name": ""}], noisy, 0)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    samples[(0, 0)]
    assert torch.equal(torch.rand(2), expected)


def test_unreadable_image_is_named(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no picture")
    mapper = Mapper(is_train=False, augmentations=[], image_format="RGB")
    entry = {"file_name": str(tmp_path / "broken.png"), "height": 8, "width": 8}
    with pytest.raises(InputError, match=r"broken\.png cannot be used"):
        SeededSamples([entry], mapper, 0)[(0, 0)]


# --- annotations (field report 33) --------------------------------------------------


def annotated(tmp_path, *segmentations):
    pixels = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "image.png")
    return {
        "file_name": str(tmp_path / "image.png"),
        "height": 60,
        "width": 80,
        "annotations": [
            {
                "bbox": [2, 2, 20, 20],
                "bbox_mode": BoxMode.XYWH_ABS,
                "category_id": 0,
                "iscrowd": 0,
                "segmentation": segmentation,
            }
            for segmentation in segmentations
        ],
    }


RLE = coco_mask.encode(np.asfortranarray(np.pad(np.ones((20, 20), np.uint8), ((5, 35), (5, 55)))))
ODD = {
    "two points": [[2.0, 2.0, 20.0, 20.0]],
    "bow-tie": [[2.0, 2.0, 20.0, 20.0, 20.0, 2.0, 2.0, 20.0]],
    "corner only": [[76.0, 56.0, 79.0, 56.0, 79.0, 59.0]],
    "RLE": RLE,
}


@pytest.mark.parametrize("kind", ODD)
def test_large_scale_jittering_takes_odd_annotations(tmp_path, kind):
    """Each is kept or dropped, and never stops the run, beside a good one that stays good."""
    good = [[10.0, 10.0, 60.0, 10.0, 60.0, 50.0, 10.0, 50.0]]
    mapper = instantiate(LazyConfig.load(CONFIG).dataloader.train.mapper)
    loader = build_train_loader(
        [annotated(tmp_path, good, ODD[kind])], mapper=mapper, total_batch_size=1
    )
    kept = []
    for [sample] in itertools.islice(loader, 12):
        instances = sample["instances"]
        assert instances.image_size == tuple(sample["image"].shape[1:])
        assert max(sample["image"].shape) <= 1024
        boxes = instances.gt_boxes.tensor
        assert torch.isfinite(boxes).all()
        assert (boxes[:, 2:] > boxes[:, :2]).all()
        # Boxes are those of what the crop has left of the masks.
        assert torch.equal(instances.gt_masks.get_bounding_boxes().tensor, boxes)
        kept.append(len(instances))
    assert 1 in kept or 2 in kept
    if kind == "RLE":
        assert 2 in kept


# --- pixels (field report 21) -------------------------------------------------------


def test_one_picture_looks_the_same_in_timm_and_detectron2(tmp_path):
    path = tmp_path / "colour.png"
    Image.new("RGB", (224, 224), (200, 100, 50)).save(path)
    config = LazyConfig.load(DEMO)
    mapped = instantiate(config.dataloader.test.mapper)(
        {"file_name": str(path), "height": 224, "width": 224}
    )
    model = instantiate(config.model)
    ours = model.preprocess_image([mapped]).tensor[0]
    import timm

    data = resolve_data_config(model=timm.create_model("srvit_nano_t3"))
    expected = create_transform(**{**data, "crop_pct": 1.0})(Image.open(path))
    torch.testing.assert_close(ours, expected, atol=0.01, rtol=0)
    assert ours[0].mean() > ours[1].mean() > ours[2].mean()


# --- own data -----------------------------------------------------------------------


def own(coins, **changes):
    paths = {
        "train_json": coins / "train.json",
        "train_images": coins / "train",
        "val_json": coins / "val.json",
        "val_images": coins / "val",
    }
    return {key: str(changes.get(key, path)) for key, path in paths.items()}


def test_class_names_and_count_come_from_the_json(coins):
    config = LazyConfig.load(CONFIG)
    config.own_data = own(coins)
    prepare_data(config, data=read_own_data(config))
    assert config.model.roi_heads.num_classes == 2
    assert config.class_names == ["small coin", "large coin"]
    instantiated = instantiate(config.dataloader.train.dataset)
    assert len(instantiated) == 12
    counts = {a["category_id"] for entry in instantiated for a in entry["annotations"]}
    assert counts == {0, 1}


def test_class_count_given_by_hand_has_to_match(coins):
    config = LazyConfig.load(CONFIG)
    config.own_data = own(coins)
    config.model.roi_heads.num_classes = 3
    with pytest.raises(InputError, match="has 2 classes: small coin, large coin"):
        prepare_data(config, ["model.roi_heads.num_classes=3"], read_own_data(config))


def edited(coins, tmp_path, edit):
    content = json.loads((coins / "val.json").read_text())
    edit(content)
    path = tmp_path / "val.json"
    path.write_text(json.dumps(content))
    return path


def read(**settings):
    data = read_detection(settings)
    data.findings.stop_on_problems()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda c: c.pop("categories"), "not in COCO's form: no list categories"),
        (lambda c: c.update(images=[]), "no picture is listed"),
        (lambda c: c.update(annotations=[]), "no object is labelled"),
        (lambda c: c["images"][0].update(file_name="gone.png"), r"missing.*gone\.png"),
        (lambda c: c["annotations"][0].update(category_id=9), "category_id 9, which is no"),
        (lambda c: c["categories"][0].update(name="button"), "'button' are in the validation"),
    ],
)
def test_unusable_json_is_explained(coins, tmp_path, edit, words):
    with pytest.raises(InputError, match=words):
        read(**own(coins, val_json=edited(coins, tmp_path, edit)))


def test_missing_paths_are_named(coins, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"no annotation file .*x\.json"):
        read(**own(coins, train_json=tmp_path / "x.json"))
    with pytest.raises(InputError, match="no image folder"):
        read(**own(coins, train_images=tmp_path / "x"))
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(InputError, match="is not json"):
        read(**own(coins, val_json=tmp_path / "bad.json"))
    config = LazyConfig.load(CONFIG)
    config.own_data = {**own(coins), "val_images": ""}
    with pytest.raises(InputError, match="missing: val_images"):
        read_own_data(config)
    monkeypatch.setenv("DETECTRON2_DATASETS", str(tmp_path))
    with pytest.raises(InputError, match="DETECTRON2_DATASETS") as error:
        check_registered("coco_2017_train")
    assert str(tmp_path) in str(error.value)


def test_json_without_info_evaluates(coins, tmp_path):
    """Field report 34: some releases of pycocotools need a key that COCO does not demand."""
    assert "info" not in json.loads((coins / "val.json").read_text())
    register(coins, tmp_path)
    evaluator = COCOEvaluator("own_val", tasks=("bbox",), output_dir=None)
    evaluator.reset()
    for entry in DatasetCatalog.get("own_val"):
        perfect = Instances((entry["height"], entry["width"]))
        boxes = [a["bbox"] for a in entry["annotations"]]
        perfect.pred_boxes = Boxes(
            BoxMode.convert(torch.tensor(boxes), BoxMode.XYWH_ABS, BoxMode.XYXY_ABS)
        )
        perfect.pred_classes = torch.tensor([a["category_id"] for a in entry["annotations"]])
        perfect.scores = torch.ones(len(boxes))
        evaluator.process([entry], [{"instances": perfect}])
    assert evaluator.evaluate()["bbox"]["AP"] == pytest.approx(100)
