import argparse
import os
import pickle

import pytest
import timm
import torch
import torch.nn.functional as F
from conftest import assert_one_line_error, run_tool
from safetensors.torch import load_file, save_file

from srvit_backbone import CheckpointError, load_checkpoint, load_pretrained
from srvit_backbone.checkpoint import convert, read, resize_pos_embed

PREFIXES = ["", "module.", "backbone.", "backbone.net.", "module.backbone."]


def assert_equal_states(model, state, names=None):
    own = model.state_dict()
    for name in names or own:
        assert torch.equal(own[name], state[name]), name


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("key", [None, "model", "state_dict", "model_ema", "state_dict_ema"])
@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_wrappings_people_have(tiny, tmp_path, prefix, key, suffix):
    """Field report 7."""
    source = {f"{prefix}{k}": v for k, v in tiny().state_dict().items()}
    if prefix.endswith(("backbone.", "net.")):
        source["roi_heads.box.weight"] = torch.zeros(3)  # the rest of a detector
    path = tmp_path / f"weights.{suffix}"
    if suffix == "safetensors":
        save_file(source, path)
    else:
        torch.save(source if key is None else {key: source, "epoch": 3}, path)
    model = tiny(init="deit")
    report = load_checkpoint(model, path)
    assert_equal_states(model, tiny().state_dict())
    assert len(report.loaded) == len(model.state_dict())
    assert report.initialised == []
    assert report.dropped == [n for n in source if n.startswith("roi_heads")]


def test_averaged_weights_win_unless_asked_otherwise(tiny):
    raw, ema = tiny().state_dict(), tiny(init="deit").state_dict()
    content = {"state_dict": raw, "state_dict_ema": ema}
    for use_ema, expected in ((True, ema), (False, raw)):
        model = tiny()
        report = load_checkpoint(model, content, use_ema=use_ema)
        assert_equal_states(model, expected)
        assert ("state_dict_ema" in report.source) == use_ema


def test_deit_file_with_namespace_loads_and_code_does_not(tiny, tmp_path):
    """Field report 11: the Namespace in DeiT's files is allowed by name, nothing else."""
    path = tmp_path / "deit.pth"
    torch.save({"model": tiny().state_dict(), "args": argparse.Namespace(lr=1.0)}, path)
    load_checkpoint(tiny(), path)

    class Malicious:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'executed'}",)

    torch.save({"model": tiny().state_dict(), "args": Malicious()}, path)
    with pytest.raises(CheckpointError, match="system"):
        load_checkpoint(tiny(), path)
    path.write_bytes(pickle.dumps(Malicious()))
    with pytest.raises(CheckpointError, match="refused"):
        load_checkpoint(tiny(), path)
    assert not (tmp_path / "executed").exists()


def reference_resize(rows, old, new):
    grid = rows.reshape(1, *old, -1).permute(0, 3, 1, 2)
    grid = F.interpolate(grid, new, mode="bicubic", align_corners=False)
    return grid.flatten(2).transpose(1, 2)


@pytest.mark.parametrize("old_prefix", [0, 1, 2])
@pytest.mark.parametrize("new_prefix", [0, 1, 2])
@pytest.mark.parametrize("old", [(14, 14), (24, 24)])
@pytest.mark.parametrize("new", [(14, 14), (24, 24), (32, 20)])
def test_prefix_rows_never_shift_the_grid(old_prefix, new_prefix, old, new):
    """Field report 15."""
    source = torch.randn(1, old_prefix + old[0] * old[1], 8)
    initial = torch.randn(1, new_prefix + new[0] * new[1], 8)
    result = resize_pos_embed(source, old, new, initial)
    expected = reference_resize(source[:, old_prefix:], old, new)
    torch.testing.assert_close(result[:, new_prefix:], expected, atol=1e-5, rtol=1e-5)
    common = min(old_prefix, new_prefix)
    assert torch.equal(result[:, :common], source[:, :common])
    assert torch.equal(result[:, common:new_prefix], initial[:, common:new_prefix])


@pytest.mark.parametrize("source_distilled", [False, True])
@pytest.mark.parametrize("target_distilled", [False, True])
@pytest.mark.parametrize("target_size", [64, 96, (128, 80)])
def test_distilled_and_plain_files_exchange(tiny, source_distilled, target_distilled, target_size):
    source = tiny(distilled=source_distilled)
    model = tiny(distilled=target_distilled, img_size=target_size)
    initial = {k: v.clone() for k, v in model.state_dict().items()}
    load_checkpoint(model, source.state_dict())
    first, own_first = 1 + source_distilled, 1 + target_distilled
    expected = reference_resize(source.pos_embed[:, first:], (4, 4), model.grid_size)
    torch.testing.assert_close(model.pos_embed[:, own_first:], expected, atol=1e-5, rtol=1e-5)
    if target_distilled and not source_distilled:
        assert torch.equal(model.dist_token, initial["dist_token"])


@pytest.mark.parametrize("rows", [1 + 4 * 4 + 3, 200])
def test_impossible_number_of_positions_raises(tiny, rows):
    state = tiny().state_dict()
    state["pos_embed"] = torch.zeros(1, rows, 32)
    with pytest.raises(CheckpointError, match=f"{rows} rows"):
        load_checkpoint(tiny(), state)


def test_rectangular_grid_survives_a_file(tiny, tmp_path):
    """Field report 6: 2 x 8 has as many cells as 4 x 4."""
    source = tiny(img_size=(32, 128))
    torch.save(source.state_dict(), tmp_path / "wide.pth")
    same = tiny(img_size=(32, 128), init="deit")
    load_checkpoint(same, tmp_path / "wide.pth")
    assert_equal_states(same, source.state_dict())
    square = tiny()
    report = load_checkpoint(square, tmp_path / "wide.pth")
    expected = reference_resize(source.pos_embed[:, 1:], (2, 8), (4, 4))
    torch.testing.assert_close(square.pos_embed[:, 1:], expected, atol=1e-5, rtol=1e-5)
    assert report.resized == {"pos_embed": "2x8 -> 4x4"}


def test_head_of_other_classes_is_initialised_and_said(tiny):
    model = tiny(num_classes=7)
    before = model.head.weight.clone()
    report = load_checkpoint(model, tiny().state_dict())
    assert torch.equal(model.head.weight, before)
    assert report.initialised == ["head.weight", "head.bias"]
    assert "head.weight" in str(report)
    report = load_checkpoint(tiny(num_classes=0), tiny().state_dict())
    assert report.dropped == ["head.weight", "head.bias"]


@pytest.mark.parametrize("share_blocks", [True, False])
def test_warm_start_folds_the_blocks_in_order(share_blocks):
    plain = timm.create_model("srvit_deit_s")
    model = timm.create_model("srvit_s_t2", share_blocks=share_blocks)
    before = model.blocks[1].router.proj.weight.clone()
    with pytest.raises(CheckpointError, match="warm start"):
        load_checkpoint(model, plain.state_dict())
    report = load_checkpoint(model, plain.state_dict(), warm_start=True)
    for name, value in model.state_dict().items():
        if name.endswith("mlp.fc1.weight"):
            depth = model.layer_depth(name)
            assert torch.equal(value, plain.blocks[depth - 1].mlp.fc1.weight)
    assert torch.equal(model.blocks[1].router.proj.weight, before)
    assert all(("router" in n or "step_transforms" in n or n.endswith(("norm.weight", "norm.bias")))
               for n in report.initialised)  # fmt: skip


def change(**changes):
    def apply(state):
        state.update({name: value for name, value in changes.items() if value is not None})
        for name in [n for n, v in changes.items() if v is None]:
            del state[name]
        return state

    return apply


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (change(**{"blocks.0.norm1.weight": None}), "blocks.0.norm1.weight is missing"),
        (change(**{"blocks.0.gamma": torch.zeros(1)}), "blocks.0.gamma is unknown"),
        (change(**{"norm.weight": torch.zeros(9)}), "norm.weight is 9, the model's is 32"),
        (lambda state: {"fc.weight": torch.zeros(2)}, "not a ViT"),
        (lambda state: {"epoch": 3}, "no tensors"),
        (
            lambda state: {f"{w}.{k}": v for k, v in state.items() for w in ("student", "teacher")},
            "several backbones",
        ),
    ],
)
def test_misfits_raise_and_leave_the_model_alone(tiny, damage, words):
    model = tiny()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    with pytest.raises(CheckpointError, match=words):
        load_checkpoint(model, damage(tiny(init="deit").state_dict()))
    assert_equal_states(model, before)


@pytest.mark.parametrize(
    "other", [{"recursion_depth": 2}, {"unit_depths": (1, 2)}, {"embed_dim": 64}]
)
def test_weights_of_another_variant_raise(tiny, other):
    with pytest.raises(CheckpointError, match="does not fit"):
        load_checkpoint(tiny(), tiny(**other).state_dict())


@pytest.mark.parametrize("name", ["a.pth", "a.safetensors"])
def test_missing_and_damaged_files_are_named(tiny, tmp_path, name):
    path = tmp_path / name
    with pytest.raises(CheckpointError, match=f"no checkpoint at .*{name}"):
        read(path)
    (save_file if name.endswith("safetensors") else torch.save)(tiny().state_dict(), path)
    for content in (path.read_bytes()[:-500], b"", b"not a checkpoint"):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=name):
            load_checkpoint(tiny(), path)


def test_timm_pretrained_goes_through_the_same_conversion(tiny, tmp_path):
    source = timm.create_model("srvit_nano_t2", img_size=64)
    save_file(source.state_dict(), tmp_path / "w.safetensors")
    model = timm.create_model(
        "srvit_nano_t2",
        pretrained=True,
        pretrained_cfg_overlay={"file": str(tmp_path / "w.safetensors")},
    )
    expected = convert(source.state_dict(), model).state
    assert_equal_states(model, expected)


def test_convert_tool_writes_deit_exactly(tmp_path):
    deit = timm.create_model("deit_small_patch16_224").eval()
    torch.save({"model": deit.state_dict(), "args": argparse.Namespace()}, tmp_path / "deit.pth")
    target = tmp_path / "new" / "srvit_deit_s.safetensors"
    process = run_tool(
        "convert_checkpoint.py", tmp_path / "deit.pth", target, "--variant", "srvit_deit_s"
    )
    assert process.returncode == 0, process.stderr
    assert "sha256" in process.stdout
    model = timm.create_model("srvit_deit_s").eval()
    model.load_state_dict(load_file(target))
    x = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        assert torch.equal(model(x), deit(x))

    failed = tmp_path / "srvit_s_t2.safetensors"
    process = run_tool(
        "convert_checkpoint.py", tmp_path / "deit.pth", failed, "--variant", "srvit_s_t2"
    )
    assert_one_line_error(process, "warm start")
    assert not failed.exists()


@pytest.mark.parametrize("how", ["stepwise", "average, uniform"])
def test_convert_tool_folds_as_it_is_told(tmp_path, how):
    deep = timm.create_model(
        "deit_small_patch16_224", embed_dim=96, num_heads=3, depth=8, img_size=32
    )
    save_file(deep.state_dict(), tmp_path / "deep.safetensors")
    target = tmp_path / "folded.safetensors"
    process = run_tool(
        *("convert_checkpoint.py", tmp_path / "deep.safetensors", target, "--img-size", 32),
        *("--variant", "srvit_nano_t2", "--warm-start", how),
    )
    assert process.returncode == 0, process.stderr
    model = timm.create_model("srvit_nano_t2", img_size=32)
    expected = convert(deep.state_dict(), model, warm_start=how).state
    found = load_file(target)
    for name in found.keys() & deep.state_dict().keys() | {"blocks.1.blocks.0.mlp.fc1.weight"}:
        assert torch.equal(found[name], expected[name]), name
    process = run_tool(
        *("convert_checkpoint.py", tmp_path / "deep.safetensors", target, "--img-size", 32),
        *("--variant", "srvit_nano_t2", "--warm-start", "sideways"),
    )
    assert_one_line_error(process, "average, uniform")


@pytest.mark.parametrize("distilled", [False, True])
def test_load_pretrained_takes_classes_and_tokens_from_the_file(tmp_path, distilled):
    source = timm.create_model(
        "srvit_nano_t2", img_size=64, num_classes=7, distilled=distilled
    ).eval()
    save_file(source.state_dict(), tmp_path / "w.safetensors")
    model = load_pretrained("srvit_nano_t2", tmp_path / "w.safetensors", img_size=64)
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(model(x), source(x))
    with pytest.raises(ValueError, match="choose one of"):
        load_pretrained("srvit_nano", tmp_path / "w.safetensors")


@pytest.mark.parametrize(("old", "new"), [(2, 3), (3, 2)])
def test_another_number_of_steps_is_a_warm_start(tiny, old, new):
    source, model = tiny(recursion_depth=old), tiny(recursion_depth=new)
    with torch.no_grad():
        for parameter in source.parameters():
            parameter.add_(1.0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(CheckpointError, match="router"):
        load_checkpoint(model, source.state_dict())
    report = load_checkpoint(model, source.state_dict(), warm_start=True)
    after, given = model.state_dict(), source.state_dict()
    common = min(old, new)
    for name, value in after.items():
        if "router.proj" in name:
            torch.testing.assert_close(value[:common], given[name][:common])
            torch.testing.assert_close(value[common:], before[name][common:])
            assert report.resized[name] == f"{old} -> {new} steps"
        elif name in given:
            torch.testing.assert_close(value, given[name])
        else:
            torch.testing.assert_close(value, before[name])
            assert name in report.initialised
    extra = {name for name in before if "step_transforms.1" in name}
    assert set(report.initialised) == (extra if new > old else set())
    dropped = {name for name in given if "step_transforms.1" in name}
    assert set(report.dropped) == (dropped if new < old else set())
