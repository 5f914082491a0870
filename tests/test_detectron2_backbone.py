"""The Detectron2 backbone, pyramid, yaml builder and optimizer groups, on the real Detectron2."""

import math
from collections import Counter

import pytest
import torch
from conftest import ROOT
from detectron2.config import LazyConfig, get_cfg, instantiate
from detectron2.modeling import build_model
from detectron2.structures import Boxes, Instances
from detectron2.utils.events import EventStorage
from paper import FIGURES
from safetensors.torch import save_file
from torch import nn

from srvit_backbone import VARIANTS, CheckpointError, SRViT
from srvit_backbone.detectron2 import (
    SRViTBackbone,
    SRViTFeaturePyramid,
    add_srvit_config,
    get_srvit_lr_decay_rate,
)
from srvit_backbone.detectron2.checkpoints import RunCheckpointer, load_initial_weights
from srvit_backbone.detectron2.flops import count_gflops

CONFIGS = sorted((ROOT / "detection" / "configs").glob("mask_rcnn_*.py"))
TABLE_4 = FIGURES["coco"]


def load(name):
    return LazyConfig.load(str(ROOT / "detection" / "configs" / f"mask_rcnn_{name}.py"))


@pytest.fixture(scope="module")
def detector():
    """The demo's detector, whose pyramid and heads are the recipe's with fewer channels."""
    torch.manual_seed(0)
    return instantiate(load("srvit_demo").model)


# --- padding (field report 2) -------------------------------------------------------


def test_images_are_padded_to_the_pyramids_stride(detector):
    sizes = [(600, 900), (500, 333)]
    images = [torch.full((3, *size), 200.0) for size in sizes]
    batch = detector.preprocess_image([{"image": image} for image in images])
    assert batch.tensor.shape == (2, 3, 608, 928)
    assert batch.image_sizes == sizes
    for tensor, (height, width) in zip(batch.tensor, sizes, strict=True):
        assert tensor[:, height:].abs().max() == 0
        assert tensor[:, :, width:].abs().max() == 0
        assert (tensor[:, :height, :width] != 0).all()
    with torch.no_grad():
        maps = detector.backbone(batch.tensor)
    for name, stride in {"p2": 4, "p3": 8, "p4": 16, "p5": 32}.items():
        assert maps[name].shape[-2:] == (608 // stride, 928 // stride)
        assert detector.backbone.output_shape()[name].stride == stride
    assert maps["p6"].shape[-2:] == (math.ceil(608 / 64), math.ceil(928 / 64))


def test_square_padding_enlarges_and_never_crops():
    def build(side):
        torch.manual_seed(0)
        return SRViTFeaturePyramid(
            net=SRViTBackbone("srvit_nano_t2", img_size=64),
            in_feature="last_feat",
            out_channels=8,
            scale_factors=(4.0, 2.0, 1.0, 0.5),
            square_pad=side,
        ).eval()

    image = torch.randn(1, 3, 64, 96)
    with torch.no_grad():
        larger_than_square = build(64)(image)
        padded = build(128)(image)
        by_hand = build(0)(nn.functional.pad(image, (0, 32, 0, 64)))
        plain = build(0)(image)
    for name, feature in plain.items():
        assert torch.equal(larger_than_square[name], feature)
        assert torch.equal(padded[name], by_hand[name])
    assert padded["p4"].shape[-2:] == (8, 8)


def test_map_is_normed_without_class_token_and_its_grid_the_ceiling():
    torch.manual_seed(0)
    net = SRViTBackbone("srvit_nano_t3", img_size=64).eval()
    image = torch.randn(2, 3, 70, 90)
    with torch.no_grad():
        feature = net(image)["last_feat"]
        tokens = net.forward_features(image)[:, 1:]
    assert feature.shape == (2, 96, 5, 6)
    assert torch.equal(feature.flatten(2).transpose(1, 2), tokens)
    assert net.output_shape()["last_feat"].stride == 16
    assert net.padding_constraints == {"size_divisibility": 16}


# --- the yaml door ------------------------------------------------------------------


def test_yaml_config_trains_a_step():
    cfg = get_cfg()
    add_srvit_config(cfg)
    cfg.merge_from_list(
        [
            *("MODEL.META_ARCHITECTURE", "GeneralizedRCNN", "MODEL.DEVICE", "cpu"),
            *("MODEL.BACKBONE.NAME", "build_srvit_sfp_backbone"),
            *("MODEL.SRVIT.VARIANT", "srvit_nano_t3", "MODEL.SRVIT.IMG_SIZE", 64),
            *("MODEL.SRVIT.OUT_CHANNELS", 16),
            *("MODEL.RPN.IN_FEATURES", ["p2", "p3", "p4", "p5", "p6"]),
            *("MODEL.ANCHOR_GENERATOR.SIZES", [[8], [16], [32], [64], [128]]),
            *("MODEL.ROI_HEADS.NAME", "StandardROIHeads"),
            *("MODEL.ROI_HEADS.IN_FEATURES", ["p2", "p3", "p4", "p5"]),
            *("MODEL.ROI_BOX_HEAD.NAME", "FastRCNNConvFCHead", "MODEL.ROI_BOX_HEAD.NUM_FC", 1),
            *("MODEL.ROI_BOX_HEAD.FC_DIM", 16, "MODEL.ROI_HEADS.NUM_CLASSES", 2),
        ]
    )
    model = build_model(cfg)
    assert isinstance(model.backbone.net, SRViTBackbone)
    instances = Instances((64, 96))
    instances.gt_boxes = Boxes(torch.tensor([[4.0, 4.0, 40.0, 40.0]]))
    instances.gt_classes = torch.tensor([1])
    with EventStorage():
        losses = model([{"image": torch.randint(0, 255, (3, 64, 96)), "instances": instances}])
    sum(losses.values()).backward()
    assert all(torch.isfinite(loss) for loss in losses.values())
    for name, parameter in model.backbone.named_parameters():
        assert parameter.grad is not None, name


def test_yaml_without_its_keys_says_what_to_call():
    cfg = get_cfg()
    cfg.MODEL.BACKBONE.NAME = "build_srvit_sfp_backbone"
    with pytest.raises(ValueError, match="add_srvit_config"):
        build_model(cfg)


# --- learning rates (field report 5) ------------------------------------------------


@pytest.mark.parametrize("name", ["srvit_s_t3", "srvit_t_t2", "deit_s"])
def test_shipped_optimizer_decays_by_stored_block(name):
    config = load(name)
    config.model.backbone.net.img_size = 64
    model = instantiate(config.model)
    config.optimizer.params.model = model
    groups = instantiate(config.optimizer).param_groups
    names = {parameter: name for name, parameter in model.named_parameters()}
    count = Counter(p for group in groups for p in group["params"])
    assert count == dict.fromkeys(names, 1)
    settings = {names[p]: group for group in groups for p in group["params"]}
    lr = {name: group["lr"] / 1e-4 for name, group in settings.items()}

    net = model.backbone.net
    layers = 8 if name == "srvit_t_t2" else 12
    modules = dict(model.named_modules())
    for full_name, group in settings.items():
        module = modules[full_name.rpartition(".")[0]]
        if full_name.startswith("backbone.net."):
            own = full_name.removeprefix("backbone.net.")
            expected = 0.7 ** (layers + 1 - net.layer_depth(own))
            # The helper for other people's configs agrees with what the model says.
            helper = get_srvit_lr_decay_rate(full_name, 0.7, layers, net.recursion_depth)
            assert helper == pytest.approx(expected)
        else:
            expected = 1.0
        assert lr[full_name] == pytest.approx(expected), full_name
        undecayed = isinstance(module, nn.LayerNorm) or full_name.endswith(
            ("pos_embed", "cls_token")
        )
        assert group["weight_decay"] == (0.0 if undecayed else 0.1), full_name
    for stem in ("pos_embed", "cls_token", "patch_embed.proj.weight"):
        assert lr[f"backbone.net.{stem}"] == pytest.approx(0.7 ** (layers + 1))
    assert lr["backbone.net.blocks.0.attn.qkv.weight"] == pytest.approx(0.7**layers)
    if net.recursion_depth > 1:
        unit = net.unit_depths[0]
        for part in ("router.proj.weight", "step_transforms.0.proj.weight", "norm.weight"):
            expected = lr[f"backbone.net.blocks.1.blocks.{unit - 1}.attn.qkv.weight"]
            assert lr[f"backbone.net.blocks.1.{part}"] == expected


def test_decay_rate_refuses_a_wrong_number_of_layers():
    with pytest.raises(ValueError, match="num_layers=11"):
        get_srvit_lr_decay_rate("backbone.net.blocks.1.norm.weight", 0.7, 11)


# --- weights (field report 7) -------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "module.", "backbone.", "backbone.net."])
@pytest.mark.parametrize("key", [None, "model", "state_dict", "model_ema"])
def test_backbone_weights_reach_the_detector(detector, tmp_path, prefix, key):
    source = SRViT(img_size=96, **VARIANTS["srvit_nano_t3"])
    state = {f"{prefix}{k}": v for k, v in source.state_dict().items()}
    torch.save(state if key is None else {key: state}, tmp_path / "w.pth")
    load_initial_weights(detector, str(tmp_path / "w.pth"))
    net = detector.backbone.net.state_dict()
    for name, value in source.state_dict().items():
        if name in net and not name.startswith("pos_embed"):
            assert torch.equal(net[name], value), name


def test_detectors_of_other_classes_keep_all_but_the_class_heads(detector, tmp_path):
    config = load("srvit_demo")
    config.model.roi_heads.num_classes = 7
    other = instantiate(config.model)
    save_file(other.state_dict(), tmp_path / "other.safetensors")
    before = {k: v.clone() for k, v in detector.state_dict().items()}
    load_initial_weights(detector, str(tmp_path / "other.safetensors"))
    for name, value in detector.state_dict().items():
        same_shape = other.state_dict()[name].shape == value.shape
        expected = other.state_dict()[name] if same_shape else before[name]
        assert torch.equal(value, expected), name
        assert same_shape or "predictor." in name


def test_detectors_of_as_many_but_other_classes_lose_their_class_heads(detector, tmp_path, caplog):
    torch.manual_seed(1)
    other = instantiate(load("srvit_demo").model)
    RunCheckpointer(other, str(tmp_path), ["cat", "dog"]).save("model")
    path, before = (
        str(tmp_path / "model.pth"),
        {k: v.clone() for k, v in detector.state_dict().items()},
    )
    load_initial_weights(detector, path, class_names=["dog", "cat"])
    assert "cat in the file is dog in the data and 1 more" in caplog.text
    for name, value in detector.state_dict().items():
        expected = before if "predictor." in name else other.state_dict()
        assert torch.equal(value, expected[name]), name
    # The same classes: all of it.
    load_initial_weights(detector, path, class_names=["cat", "dog"])
    for name, value in detector.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
    # Where a run is to be evaluated or resumed, other classes are an error.
    RunCheckpointer(detector, class_names=["cat", "dog"]).load(path)
    with pytest.raises(CheckpointError, match="cat in the file is dog in the data"):
        RunCheckpointer(detector, class_names=["dog", "cat"]).load(path)


@pytest.mark.parametrize("name", ["retinanet_srvit_demo", "fcos_srvit_demo"])
def test_class_heads_of_dense_detectors_may_differ_too(name, tmp_path):
    config = LazyConfig.load(str(ROOT / f"detection/configs/{name}.py"))
    config.model.num_classes = 2
    model = instantiate(config.model)
    config.model.num_classes = 7
    other = instantiate(config.model)
    save_file(other.state_dict(), tmp_path / "other.safetensors")
    before = {k: v.clone() for k, v in model.state_dict().items()}
    load_initial_weights(model, str(tmp_path / "other.safetensors"))
    kept = [k for k, v in model.state_dict().items() if v.shape != other.state_dict()[k].shape]
    assert kept == ["head.cls_score.weight", "head.cls_score.bias"]
    for key, value in model.state_dict().items():
        assert torch.equal(value, (before if key in kept else other.state_dict())[key]), key


def test_weights_that_do_not_fit_raise(detector, tmp_path):
    torch.save({"model": SRViT(embed_dim=96, num_heads=3).state_dict()}, tmp_path / "other.pth")
    with pytest.raises(CheckpointError, match="does not fit"):
        load_initial_weights(detector, str(tmp_path / "other.pth"))
    state = {k: v for k, v in detector.state_dict().items() if "mask_head.deconv" not in k}
    torch.save({"model": state}, tmp_path / "part.pth")
    with pytest.raises(CheckpointError, match=r"deconv\S* is missing"):
        load_initial_weights(detector, str(tmp_path / "part.pth"))


# --- configs ------------------------------------------------------------------------


def test_all_nine_models_have_a_config():
    names = {path.stem.removeprefix("mask_rcnn_") for path in CONFIGS}
    assert names == {*TABLE_4, "srvit_t_t2", "srvit_t_t3", "srvit_demo"}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_image_format_is_the_models(path):
    config = LazyConfig.load(str(path))
    for part in (config.dataloader.train, config.dataloader.test):
        assert part.mapper.image_format == config.model.input_format == "RGB"
    assert config.model.pixel_mean == [123.675, 116.28, 103.53]
    assert config.model.pixel_std == [58.395, 57.12, 57.375]


def test_recipe_is_the_papers():
    """Section D.2, and what design section 3 settles."""
    config = load("srvit_s_t3")
    assert config.train.max_iter == 270_000
    assert config.dataloader.train.total_batch_size == 16
    assert config.model.backbone.net.drop_path_rate == 0.1
    assert config.model.backbone.square_pad == 1024
    optimizer = config.optimizer
    assert (optimizer.lr, optimizer.weight_decay) == (1e-4, 0.1)
    assert list(optimizer.betas) == [0.9, 0.999]
    schedule = instantiate(config.lr_multiplier)
    factors = [schedule(i / 270_000) for i in (0, 500, 1000, 135_000, 270_000)]
    # Linear over 1000 iterations into the cosine, which has hardly fallen by then.
    assert factors == pytest.approx([0.001, 0.5005, 1.0, 0.5, 0.0], abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE_4)
def test_table_4_coco(name):
    model = instantiate(load(name).model)
    count = sum(p.numel() for p in model.parameters())
    assert round(count / 1e6, 1) == TABLE_4[name]["params"]
    assert round(count_gflops(model, 1024, 1024), 1) == TABLE_4[name]["flops"]
