"""SR-ViT in MMDetection; `make test-mmdet` runs this in an environment that has it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import ROOT, run_tool
from mmengine.config import Config
from mmengine.registry import init_default_scope
from torchvision.ops import roi_align

mmdet = pytest.importorskip(
    "mmdet.registry", reason="MMDetection is not installed: make test-mmdet"
)

CONFIGS = ROOT / "detection" / "mmdet_configs"
DETECTORS = ("mask_rcnn", "retinanet", "dino")


def train(detector, coins, folder, *options):
    """Train as `mim train mmdetection` does; returns the lines of the log."""
    process = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "mim", "train", "mmdetection"),
            *(str(CONFIGS / f"{detector}_srvit_demo.py"), "--gpus", "0"),
            *("--work-dir", str(folder)),
            *(["--cfg-options", *options] if options else []),
        ],
        env={**os.environ, "COINS": str(coins)},
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert process.returncode == 0, process.stderr[-3000:] + process.stdout[-2000:]
    log = next(Path(folder).glob("*/vis_data/scalars.json"))
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize("detector", DETECTORS)
def test_the_paper_sized_config_builds_and_all_of_the_backbone_learns(detector):
    config = Config.fromfile(CONFIGS / f"{detector}_srvit_s_t3.py")
    init_default_scope(config.default_scope)
    config.model.backbone.pretrained = None
    with torch.device("meta"):
        model = mmdet.MODELS.build(config.model)
    assert model.backbone.effective_depth == 32
    assert all(p.requires_grad for p in model.backbone.parameters())
    with torch.device("meta"):
        maps = model.extract_feat(torch.empty(1, 3, 256, 256))
    first = 4 if detector == "mask_rcnn" else 8
    assert [256 // m.shape[-1] for m in maps] == [first * 2**i for i in range(len(maps))]


@pytest.mark.parametrize("detector", DETECTORS)
def test_the_loss_falls_and_the_run_evaluates(detector, coins, tmp_path):
    lines = train(
        *(detector, coins, tmp_path / "run", "train_cfg.max_iters=60", "train_cfg.val_interval=60"),
        "default_hooks.logger.interval=1",
    )
    losses = [line["loss"] for line in lines if "loss" in line]
    # The logged loss is the mean of so many iterations as the log's window has.
    assert len(losses) == 60
    assert losses[-1] < 0.95 * losses[9]
    assert 0 <= lines[-1]["coco/bbox_mAP_50"] <= 1


def test_mmcvs_rois_are_torchvisions_on_the_pyramids_maps():
    from mmcv.ops import RoIAlign

    from srvit_backbone.openmmlab import SimpleFeaturePyramid

    rois = torch.tensor([[0, 10.0, 20, 60, 70], [1, 30, 30, 90, 100]])
    for stride, level in zip(
        (4, 8, 16, 32), SimpleFeaturePyramid(16, 8)([torch.randn(2, 16, 8, 8)]), strict=False
    ):
        expected = roi_align(level, rois, 7, 1 / stride, sampling_ratio=2, aligned=True)
        found = RoIAlign(7, 1 / stride, sampling_ratio=2, aligned=True)(level, rois)
        torch.testing.assert_close(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("detector", ["mask_rcnn", "retinanet"])
def test_it_finds_the_coins(detector, tmp_path):
    coins = tmp_path / "coins"
    assert run_tool("make_mini_dataset.py", "coins", coins).returncode == 0
    assert train(detector, coins, tmp_path / "run")[-1]["coco/bbox_mAP_50"] >= 0.7


def test_wrong_class_counts_are_named_by_mmdets_own_check(coins, tmp_path):
    with pytest.raises(AssertionError, match="num_classes"):
        train("retinanet", coins, tmp_path / "run", "model.bbox_head.num_classes=5")


def test_all_three_frameworks_in_one_process():
    import mmseg.registry
    from detectron2.modeling import BACKBONE_REGISTRY
    from mmengine.registry import MODELS

    import srvit_backbone.detectron2.backbone
    import srvit_backbone.openmmlab  # noqa: F401

    assert "build_srvit_sfp_backbone" in BACKBONE_REGISTRY
    for registry in (MODELS, mmdet.MODELS, mmseg.registry.MODELS):
        assert registry.get("SRViTBackbone") is srvit_backbone.openmmlab.SRViTBackbone
