"""Weights of DeiT, MAE, DINOv2 and timm ViTs in SR-ViT: exact for T = 1, folded for recursion."""

import pytest
import torch
from timm.models.vision_transformer import VisionTransformer

from srvit_backbone import CheckpointError, load_checkpoint


def vit(**settings):
    """A ViT of timm as wide as the ``tiny`` models, no weight of which is a special value."""
    torch.manual_seed(1)
    model = VisionTransformer(
        **{
            **{"img_size": 64, "embed_dim": 32, "num_heads": 2, "depth": 5, "num_classes": 5},
            **settings,
        }
    )
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model.eval()


def test_layer_scales_are_multiplied_in_exactly(tiny):
    source, model = vit(init_values=0.5), tiny(recursion_depth=1).eval()
    report = load_checkpoint(model, source.state_dict())
    x = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(model(x), source(x), atol=1e-5, rtol=1e-4)
    assert not report.initialised


def test_dinov2s_chunks_and_registers(tiny):
    source = vit()
    state = {
        (f"blocks.{int(name.split('.')[1]) // 3}.{name[7:]}" if name[:7] == "blocks." else name): v
        for name, v in source.state_dict().items()
    }
    state |= {"mask_token": torch.zeros(1, 32), "register_tokens": torch.zeros(1, 4, 32)}
    model = tiny(recursion_depth=1).eval()
    report = load_checkpoint(model, state)
    x = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(model(x), source(x), atol=1e-5, rtol=1e-4)
    assert {"mask_token", "register_tokens"} <= set(report.dropped)


def test_maes_decoder_is_left_out_and_said(tiny):
    state = vit().state_dict()
    state |= {"decoder_blocks.0.norm1.weight": torch.ones(3), "decoder_pred.bias": torch.ones(3)}
    report = load_checkpoint(tiny(recursion_depth=1), state)
    assert {"decoder_blocks.0.norm1.weight", "decoder_pred.bias"} <= set(report.dropped)


def test_patches_of_14_pixels_are_resampled(tiny):
    source = vit(img_size=56, patch_size=14)
    model = tiny(recursion_depth=1)
    report = load_checkpoint(model, source.state_dict())
    assert report.resized["patch_embed.proj.weight"] == "patches 14x14 -> 16x16"
    # A constant picture gives a constant weight's sum, whatever the size of the patch.
    flat = torch.full((1, 3, 14, 14), 0.5), torch.full((1, 3, 16, 16), 0.5)
    torch.nn.init.constant_(source.patch_embed.proj.weight, 0.1)
    load_checkpoint(model, source.state_dict())
    torch.testing.assert_close(
        model.patch_embed.proj(flat[1]), source.patch_embed.proj(flat[0]), rtol=0.02, atol=0.02
    )


@pytest.mark.parametrize(
    ("fold", "groups"),
    [
        ("stepwise", [[0], [2], [4], [7], [9]]),
        ("average", [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]),
    ],
)
@pytest.mark.parametrize("depth", [1, 2])
def test_more_blocks_onto_fewer(tiny, fold, groups, depth):
    source, model = vit(depth=10), tiny(recursion_depth=depth)  # 5 unique blocks
    report = load_checkpoint(model, source.state_dict(), warm_start=fold)
    own = [m.attn.qkv.weight for m in model.modules() if hasattr(m, "attn")]
    assert len(own) == 5
    for weight, group in zip(own, groups, strict=True):
        mean = sum(source.blocks[index].attn.qkv.weight for index in group) / len(group)
        torch.testing.assert_close(weight, mean)
    assert f"10 blocks onto 5, {fold}" in str(report)


@pytest.mark.parametrize("warm_start", ["stepwise, uniform", "average, uniform"])
def test_a_uniform_start_is_the_mean_of_the_plain_networks_steps(tiny, warm_start):
    source, model = vit(), tiny(recursion_depth=3).eval()
    report = load_checkpoint(model, source.state_dict(), warm_start=warm_start)
    unit, x = model.blocks[1], torch.randn(2, 17, 32)
    step, total = x, 0
    for _ in range(3):
        step = source.blocks[2](source.blocks[1](step))
        total = total + unit.norm(step)
    torch.testing.assert_close(unit(x), total / 3, atol=1e-5, rtol=1e-4)
    assert "set to 0 for a uniform mixture" in str(report)
    assert not any("proj" in name for name in report.initialised)
    # and both learn from there
    unit(x).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in unit.router.proj.parameters())


def test_fewer_blocks_and_unknown_words_are_refused(tiny):
    model = tiny(recursion_depth=2)
    before = model.blocks[0].attn.qkv.weight.clone()
    with pytest.raises(CheckpointError, match="3 blocks, the model 5"):
        load_checkpoint(model, vit(depth=3).state_dict(), warm_start=True)
    with pytest.raises(ValueError, match="stepwise, uniform"):
        load_checkpoint(model, vit().state_dict(), warm_start="mean")
    torch.testing.assert_close(model.blocks[0].attn.qkv.weight, before)
