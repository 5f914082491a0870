"""The properties that timm's own test suite asserts of every model, on ours."""

import subprocess
import sys

import pytest
import timm
import torch
from timm.data import resolve_data_config
from timm.models import get_notrace_functions, get_notrace_modules
from timm.optim import param_groups_layer_decay, param_groups_weight_decay
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

from srvit_backbone import VARIANTS

BIG = {"srvit_deit_b", "srvit_b_t2", "srvit_b_t3", "srvit_s_t4"}
MODELS = [pytest.param(n, marks=pytest.mark.slow if n in BIG else ()) for n in VARIANTS]
each_model = pytest.mark.parametrize("name", MODELS)


@each_model
def test_forward_and_checkpointing(name):
    model = timm.create_model(name).eval()
    x = torch.randn(1, 3, 224, 224)
    output = model(x)
    assert output.shape == (1, 1000)
    assert output.isfinite().all()
    model.set_grad_checkpointing()
    torch.testing.assert_close(model(x), output)


@each_model
def test_backward_reaches_every_parameter(name):
    model = timm.create_model(name, num_classes=42).train()
    model(torch.randn(2, 3, 128, 128)).mean().backward()
    assert [n for n, p in model.named_parameters() if p.grad is None] == []


@each_model
def test_default_cfg_and_reset_classifier(name):
    model = timm.create_model(name).eval()
    x = torch.randn(1, 3, 96, 96)
    features = model.forward_features(x)
    pooled = model.forward_head(features, pre_logits=True)
    assert features.shape[-1] == model.num_features
    assert pooled.shape == (1, model.head_hidden_size)
    names = model.state_dict()
    assert f"{model.pretrained_cfg['classifier']}.weight" in names
    assert f"{model.pretrained_cfg['first_conv']}.weight" in names
    model.reset_classifier(7)
    assert model(x).shape == (1, 7)
    model.reset_classifier(0)
    assert model.num_classes == 0
    assert torch.equal(model(x), pooled)
    model.reset_classifier(0, "")
    assert torch.equal(model(x), features)
    assert timm.create_model(name, num_classes=0)(x).shape == pooled.shape


@each_model
def test_features_only(name):
    model = timm.create_model(name, features_only=True).eval()
    outputs = model(torch.randn(1, 3, 96, 64))
    assert len(outputs) == len(model.feature_info) >= 3
    for info, output in zip(model.feature_info, outputs, strict=True):
        assert info["reduction"] == 16
        assert output.shape == (1, info["num_chs"], 6, 4)


@each_model
def test_forward_intermediates_end_like_forward_features(name):
    model = timm.create_model(name).eval()
    x = torch.randn(1, 3, 96, 96)
    final, features = model.forward_intermediates(x, output_fmt="NCHW")
    assert len(features) == len(model.feature_info)
    assert torch.equal(final, model.forward_features(x))


@pytest.mark.parametrize("name", ["srvit_nano_t3", "srvit_deit_s", "srvit_t_t2"])
@pytest.mark.parametrize("train", [False, True])
def test_fx_graph_is_the_model(name, train):
    model = timm.create_model(name, num_classes=42).train(train)
    tracer = {
        "leaf_modules": get_notrace_modules(),
        "autowrap_functions": get_notrace_functions(),
        "param_shapes_constant": True,
    }
    train_nodes, eval_nodes = get_graph_node_names(model, tracer_kwargs=tracer)
    graph = create_feature_extractor(
        model,
        train_return_nodes=[train_nodes[-1]],
        eval_return_nodes=[eval_nodes[-1]],
        tracer_kwargs=tracer,
    )
    x = torch.randn(2, 3, 128, 96)
    (output,) = graph(x).values()
    assert torch.equal(output, model(x))
    output.mean().backward()
    assert all(p.grad is not None for p in graph.parameters())


def test_compile_and_export_are_the_model():
    model = timm.create_model("srvit_nano_t3").eval()
    x = torch.randn(2, 3, 96, 64)
    with torch.no_grad():
        expected = model(x)
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), expected)
        exported = torch.export.export(model, (x,)).module()
        torch.testing.assert_close(exported(x), expected)


def test_some_feature_points_prune_the_rest():
    full = timm.create_model("srvit_s_t2").eval()
    model = timm.create_model("srvit_s_t2", features_only=True, out_indices=(0, 2)).eval()
    model.model.load_state_dict(full.state_dict(), strict=False)
    assert len(model.model.blocks) == 4
    x = torch.randn(1, 3, 64, 64)
    expected = full.forward_intermediates(x, indices=[0, 2], intermediates_only=True)
    for given, wanted in zip(model(x), expected, strict=True):
        assert torch.equal(given, wanted)


def test_weight_decay_groups_are_deits():
    model = timm.create_model("srvit_nano_t3", distilled=True)
    kept, decayed = param_groups_weight_decay(
        model, 0.05, no_weight_decay_list=model.no_weight_decay()
    )
    names = {id(p): n for n, p in model.named_parameters()}
    free = {names[id(p)] for p in kept["params"]}
    assert {"pos_embed", "cls_token", "dist_token"} < free
    assert all(p.ndim > 1 for p in decayed["params"])
    assert "blocks.1.router.proj.weight" not in free


def test_layer_decay_groups_follow_the_depth():
    model = timm.create_model("srvit_s_t3")
    groups = param_groups_layer_decay(
        model, 0.05, layer_decay=0.5, no_weight_decay_list=model.no_weight_decay()
    )
    names = {id(p): n for n, p in model.named_parameters()}
    for group in groups:
        for parameter in group["params"]:
            assert group["lr_scale"] == 0.5 ** (13 - model.layer_depth(names[id(parameter)]))


def test_data_config_is_imagenets():
    config = resolve_data_config(model=timm.create_model("srvit_s_t3"))
    assert config["input_size"] == (3, 224, 224)
    assert config["mean"] == (0.485, 0.456, 0.406)
    assert config["crop_pct"] == 0.875


def test_importing_the_package_imports_no_framework():
    script = (
        "import sys, srvit_backbone\n"
        "frameworks = {'detectron2', 'mmengine', 'mmcv', 'mmseg', 'mmdet'}\n"
        "loaded = frameworks & sys.modules.keys()\n"
        "assert not loaded, loaded\n"
    )
    process = subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", script],
                             capture_output=True, text=True, check=False)  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert process.stdout == ""
