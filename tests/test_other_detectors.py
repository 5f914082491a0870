"""Cascade Mask R-CNN, RetinaNet, FCOS and a yaml config, on the real Detectron2."""

import json

import pytest
import torch
from conftest import ROOT, own_data, register, run_tool
from detectron2.config import LazyConfig, get_cfg, instantiate
from detectron2.engine import DefaultTrainer
from detectron2.modeling import build_model

from srvit_backbone.detectron2 import SRViTFeaturePyramid, add_srvit_config

CONFIGS = ROOT / "detection" / "configs"
DETECTORS = ("cascade_mask_rcnn", "retinanet", "fcos")


def train(detector, coins, output, *options):
    process = run_tool(
        *("train_net.py", "--config-file", CONFIGS / f"{detector}_srvit_demo.py"),
        *[f"own_data.{key}={path}" for key, path in own_data(coins).items()],
        *(f"train.output_dir={output}", *options),
    )
    assert process.returncode == 0, process.stderr[-3000:]


@pytest.mark.parametrize("detector", DETECTORS)
def test_the_paper_sized_config_builds_on_the_recipes_backbone(detector):
    config = LazyConfig.load(str(CONFIGS / f"{detector}_srvit_s_t3.py"))
    reference = LazyConfig.load(str(CONFIGS / "mask_rcnn_srvit_s_t3.py"))
    with torch.device("meta"):
        model = instantiate(config.model)
    assert isinstance(model.backbone, SRViTFeaturePyramid)
    assert model.backbone.net.effective_depth == 32
    assert config.optimizer == reference.optimizer
    assert config.dataloader.train.total_batch_size == 16
    assert config.train.init_checkpoint == reference.train.init_checkpoint
    assert config.train.output_dir != reference.train.output_dir


# RetinaNet divides by a running count of positives that starts at 100, whatever the data: only when
# that has settled does its loss mean the same from one iteration to the next.
@pytest.mark.parametrize(
    ("detector", "iterations", "settled"),
    [("cascade_mask_rcnn", 24, 0), ("retinanet", 60, 25), ("fcos", 30, 0)],
)
def test_the_loss_falls_and_the_run_evaluates(detector, iterations, settled, coins, tmp_path):
    output = tmp_path / "out"
    options = (f"train.max_iter={iterations}", "train.log_period=1", "train.eval_period=0")
    train(detector, coins, output, *options)
    lines = [json.loads(line) for line in (output / "metrics.json").read_text().splitlines()]
    losses = [line["total_loss"] for line in lines if "total_loss" in line]
    assert len(losses) == iterations
    assert sum(losses[-8:]) < 0.9 * sum(losses[settled : settled + 8])
    assert "AP50" in json.loads((output / "metrics_final.json").read_text())["bbox"]


@pytest.mark.slow
@pytest.mark.parametrize("detector", DETECTORS)
def test_it_finds_the_coins(detector, tmp_path):
    coins = tmp_path / "coins"
    assert run_tool("make_mini_dataset.py", "coins", coins).returncode == 0
    train(detector, coins, tmp_path / "out")
    assert json.loads((tmp_path / "out/metrics_final.json").read_text())["bbox"]["AP50"] >= 70


def test_a_yaml_config_trains_with_detectron2s_own_trainer(coins, tmp_path):
    """What the stock tools/train_net.py does, after the import and add_srvit_config."""
    register(coins, tmp_path)
    cfg = get_cfg()
    add_srvit_config(cfg)
    yaml = tmp_path / "config.yaml"
    yaml.write_text(
        """
MODEL:
  META_ARCHITECTURE: GeneralizedRCNN
  DEVICE: cpu
  BACKBONE: {NAME: build_srvit_sfp_backbone}
  SRVIT: {VARIANT: srvit_nano_t3, IMG_SIZE: 192, DROP_PATH_RATE: 0.0, OUT_CHANNELS: 32}
  PIXEL_MEAN: [123.675, 116.28, 103.53]
  PIXEL_STD: [58.395, 57.12, 57.375]
  RPN: {IN_FEATURES: [p2, p3, p4, p5, p6], BATCH_SIZE_PER_IMAGE: 64}
  ANCHOR_GENERATOR: {SIZES: [[16], [32], [48], [64], [96]]}
  ROI_HEADS: {NAME: StandardROIHeads, IN_FEATURES: [p2, p3, p4, p5], NUM_CLASSES: 2,
              BATCH_SIZE_PER_IMAGE: 32}
  ROI_BOX_HEAD: {NAME: FastRCNNConvFCHead, NUM_FC: 1, FC_DIM: 64, POOLER_RESOLUTION: 7}
INPUT: {FORMAT: RGB, MIN_SIZE_TRAIN: [192], MAX_SIZE_TRAIN: 192}
DATASETS: {TRAIN: [own_train], TEST: []}
DATALOADER: {NUM_WORKERS: 0}
SOLVER: {IMS_PER_BATCH: 2, BASE_LR: 0.02, MAX_ITER: 25, WARMUP_ITERS: 5, STEPS: []}
"""
    )
    cfg.merge_from_file(str(yaml))
    cfg.OUTPUT_DIR = str(tmp_path / "out")
    (tmp_path / "out").mkdir()
    trainer = DefaultTrainer(cfg)
    trainer.resume_or_load(resume=False)
    trainer.train()
    history = trainer.storage.history("total_loss").values()
    losses = [value for value, _ in history]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


def test_two_variants_in_one_process_beside_mmseg():
    """One registration serves all; both frameworks live in one process."""
    from mmengine.registry import MODELS

    import srvit_backbone.openmmlab  # noqa: F401

    small = MODELS.build(
        {"type": "SRViTBackbone", "variant": "srvit_nano_t2", "img_size": 64, "out_indices": (0,)}
    )
    other = MODELS.build(
        {"type": "SRViTBackbone", "variant": "srvit_nano_t3", "img_size": 64, "out_indices": (0, 1)}
    )
    cfg = get_cfg()
    add_srvit_config(cfg)
    cfg.MODEL.BACKBONE.NAME = "build_srvit_sfp_backbone"
    cfg.MODEL.SRVIT.VARIANT = "srvit_nano_t3"
    cfg.MODEL.RPN.IN_FEATURES = ["p2", "p3", "p4", "p5", "p6"]
    cfg.MODEL.ANCHOR_GENERATOR.SIZES = [[32], [64], [128], [256], [512]]
    cfg.MODEL.META_ARCHITECTURE = "GeneralizedRCNN"
    cfg.MODEL.ROI_HEADS.NAME = "StandardROIHeads"
    cfg.MODEL.ROI_HEADS.IN_FEATURES = ["p2", "p3", "p4", "p5"]
    cfg.MODEL.ROI_BOX_HEAD.NAME = "FastRCNNConvFCHead"
    cfg.MODEL.ROI_BOX_HEAD.NUM_FC = 1
    cfg.MODEL.DEVICE = "cpu"
    detector = build_model(cfg)
    assert small.recursion_depth == 2
    assert other.recursion_depth == detector.backbone.net.recursion_depth == 3
    assert len(other(torch.randn(1, 3, 70, 80))) == 2
