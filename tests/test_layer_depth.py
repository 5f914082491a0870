import pytest
import timm

from srvit_backbone.layer_depth import layer_depth, layer_lr_scales

UNITS = (4, 3, 2, 1)


@pytest.mark.parametrize("prefix", ["", "module.", "backbone.net.", "img_backbone.vit."])
@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("patch_embed.proj.weight", 0),
        ("pos_embed", 0),
        ("cls_token", 0),
        ("dist_token", 0),
        ("blocks.0.attn.qkv.weight", 1),
        ("blocks.1.blocks.0.norm1.bias", 2),
        ("blocks.1.blocks.3.mlp.fc1.weight", 5),
        ("blocks.1.router.proj.weight", 5),
        ("blocks.1.step_transforms.1.proj.bias", 5),
        ("blocks.1.norm.weight", 5),
        ("blocks.2.blocks.0.attn.qkv.weight", 6),
        ("blocks.4.norm.weight", 11),
        ("blocks.5.mlp.fc2.weight", 12),
        ("norm.weight", 13),
        ("head.weight", 13),
    ],
)
def test_depth_of_recursive_model(prefix, name, depth):
    assert layer_depth(prefix + name, UNITS, recursion_depth=3) == depth


def test_depth_of_deit_is_the_block():
    assert [layer_depth(f"blocks.{i}.norm1.weight", UNITS, 1) for i in range(12)] == [*range(1, 13)]


def test_copies_of_a_block_have_its_depth():
    model = timm.create_model("srvit_nano_t3", share_blocks=False)
    depths = [model.layer_depth(f"blocks.1.blocks.{i}.norm1.weight") for i in range(6)]
    assert depths == [2, 3, 2, 3, 2, 3]


def test_block_behind_the_last_raises():
    with pytest.raises(ValueError, match=r"blocks\.6"):
        layer_depth("blocks.6.attn.qkv.weight", UNITS, recursion_depth=2)


def test_scales_cover_every_parameter_of_a_larger_model():
    from torch import nn

    model = nn.ModuleDict({"backbone": timm.create_model("srvit_nano_t2"), "head": nn.Linear(2, 2)})
    scales = layer_lr_scales(model, 0.5)
    assert scales.keys() == {name for name, _ in model.named_parameters()}
    assert scales["backbone.cls_token"] == 0.5**6
    assert scales["backbone.blocks.3.norm1.weight"] == 0.5
    assert scales["backbone.norm.weight"] == scales["head.weight"] == 1.0
