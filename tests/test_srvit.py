import math

import pytest
import timm
import torch
import torch.distributed as dist
import torch.nn.functional as F
from paper import FIGURES
from timm.utils import ModelEmaV3
from torch.nn.parallel import DistributedDataParallel

from srvit_backbone import VARIANTS, SRViT, load_checkpoint
from srvit_backbone.variants import variant_settings


def millions(model):
    return round(sum(p.numel() for p in model.parameters()) / 1e6, 1)


@pytest.mark.parametrize("name", FIGURES["classification"])
def test_parameters_and_depth_are_the_papers(name):
    model = timm.create_model(name)
    paper = FIGURES["classification"][name]
    assert (millions(model), model.effective_depth) == (paper["params"], paper["depth"])


@pytest.mark.parametrize("row", FIGURES["ablation"], ids=lambda row: row["label"])
def test_ablation_parameters_are_the_papers(row):
    # "Step Transform only" is printed as 22.7, which no arrangement that fits the others gives.
    expected = 22.6 if row["label"] == "Step Transform only, T=2" else row["params"]
    assert millions(SRViT(**row["settings"])) == expected


@pytest.mark.parametrize("units", [(10,), (1,) * 10, (1, 2, 3, 4), (4, 3, 2, 1)])
def test_unit_organisations_have_the_same_depth(units):
    model = SRViT(unit_depths=units, recursion_depth=2, aggregation="last", step_transform=False)
    assert model.effective_depth == 22
    assert millions(model) == 22.1


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("srvit_deit_s", "deit_small_patch16_224"),
        ("srvit_deit_b", "deit_base_patch16_224"),
    ],
)
@pytest.mark.parametrize("distilled", [False, True])
def test_one_step_is_deit_to_the_bit(ours, theirs, distilled):
    name = theirs.replace("patch16", "distilled_patch16") if distilled else theirs
    reference = timm.create_model(name).eval()
    model = timm.create_model(ours, distilled=distilled).eval()
    report = load_checkpoint(model, reference.state_dict())
    assert not report.initialised
    assert not report.dropped
    x = torch.randn(2, 3, 224, 224)
    with torch.no_grad():
        assert torch.equal(model(x), reference(x))


def test_recursive_model_equals_plain_loop(tiny):
    model = tiny(recursion_depth=3).eval()
    x = torch.randn(2, 3, 64, 64)
    tokens = model.patch_embed.proj(x).flatten(2).transpose(1, 2)
    tokens = torch.cat([model.cls_token.expand(2, -1, -1), tokens], 1) + model.pos_embed
    tokens = model.blocks[0](tokens)
    for unit in model.blocks[1:3]:
        weights = unit.router.proj(unit.router.norm(tokens)).softmax(-1)
        total = 0
        for step in range(3):
            if step:
                tokens = tokens + unit.step_transforms[step - 1].proj(tokens)
            for block in unit.blocks:
                tokens = block(tokens)
            total = total + weights[:, :, step, None] * unit.norm(tokens)
        tokens = total
    tokens = model.norm(model.blocks[3](tokens))
    torch.testing.assert_close(model(x), model.head(tokens[:, 0]))


@pytest.mark.parametrize("native", [(64, 64), (32, 128)])
@pytest.mark.parametrize("grid", [(2, 8), (8, 2), (4, 5), (5, 4), (3, 3), (4, 4)])
def test_position_embedding_is_resampled_by_grid(tiny, native, grid):
    """Field report 6: by the shape of the grid, not by the number of its cells."""
    model = tiny(img_size=native).eval()
    height, width = native[0] // 16, native[1] // 16
    positions = model.pos_embed[:, 1:].reshape(1, height, width, -1).permute(0, 3, 1, 2)
    expected = F.interpolate(positions, grid, mode="bicubic", align_corners=False)
    expected = expected.flatten(2).transpose(1, 2)

    image = torch.randn(1, 3, grid[0] * 16, grid[1] * 16)
    added, _ = model._embed(image)
    patches = model.patch_embed(image).flatten(1, 2)
    torch.testing.assert_close(added[:, 1:] - patches, expected, atol=1e-5, rtol=1e-5)
    if grid == (native[0] // 16, native[1] // 16):
        assert torch.equal(added[:, 1:], patches + model.pos_embed[:, 1:])


@pytest.mark.parametrize("size", [(64, 64), (50, 33), (16, 200), (1, 1), (65, 64)])
def test_any_size_is_padded_right_and_below(tiny, size):
    model = tiny().eval()
    x = torch.randn(1, 3, *size)
    grid = tuple(math.ceil(side / 16) for side in size)
    padded = F.pad(x, (0, grid[1] * 16 - size[1], 0, grid[0] * 16 - size[0]))
    (feature,) = model.forward_intermediates(x, indices=[-1], intermediates_only=True)
    assert feature.shape[-2:] == grid
    assert torch.equal(model(x), model(padded))


@pytest.mark.parametrize(("depth", "count"), [(1, 5), (3, 3)])
def test_feature_points(tiny, depth, count):
    model = tiny(recursion_depth=depth).eval()
    x = torch.randn(2, 3, 40, 64)
    final, features = model.forward_intermediates(x)
    assert torch.equal(final, model.forward_features(x))
    assert len(features) == len(model.feature_info) == count
    # The last point is the last block: normalised, it is the end of forward_features.
    (last,) = model.forward_intermediates(
        x, indices=[-1], norm=True, output_fmt="NLC", intermediates_only=True
    )
    assert torch.equal(last, final[:, 1:])
    tokens = model.forward_intermediates(x, output_fmt="NLC", intermediates_only=True)
    for spatial, flat in zip(features, tokens, strict=True):
        assert torch.equal(spatial, flat.transpose(1, 2).reshape(2, 32, 3, 4))
    if depth > 1:
        seen = []
        hooks = [
            b.register_forward_hook(lambda m, i, out: seen.append(out)) for b in model.blocks[1:]
        ]
        model(x)
        for hook in hooks:
            hook.remove()
        for flat, output in zip(tokens, seen, strict=True):
            assert torch.equal(flat, output[:, 1:])


def test_nothing_is_computed_behind_the_last_point(tiny):
    model = tiny().eval()
    ran = []
    model.blocks[-1].register_forward_hook(lambda *a: ran.append(1))
    model.forward_intermediates(torch.randn(1, 3, 64, 64), indices=[0, 1], intermediates_only=True)
    assert not ran


@pytest.mark.parametrize("indices", [[3], [-4], 4, 0, []])
def test_wrong_feature_points_are_named(tiny, indices):
    with pytest.raises(ValueError, match="3 feature points"):
        tiny().forward_intermediates(torch.randn(1, 3, 64, 64), indices=indices)


def test_routing_weights_are_the_models_own(tiny):
    model = tiny(recursion_depth=3).eval()
    seen = []
    for unit in model.blocks[1:3]:
        unit.router.register_forward_hook(lambda m, i, out: seen.append(out))
    x = torch.randn(2, 3, 40, 64)
    model(x)
    own = [w[:, 1:].transpose(1, 2).reshape(2, 3, 3, 4) for w in seen]
    maps = model.routing_weights(x)
    assert len(maps) == 2
    for given, used in zip(maps, own, strict=True):
        assert torch.equal(given, used)
        torch.testing.assert_close(given.sum(1), torch.ones(2, 3, 4))


@pytest.mark.parametrize("settings", [{"recursion_depth": 1}, {"aggregation": "last"}])
def test_routing_weights_need_a_router(tiny, settings):
    with pytest.raises(ValueError, match="recursion_depth"):
        tiny(**settings).routing_weights(torch.randn(1, 3, 64, 64))


def test_fewer_steps_are_the_shallower_model(tiny):
    """Naive recursion cut short is the model of that T; all steps again are the model itself."""
    naive = {"aggregation": "last", "step_transform": False, "unit_depths": (2, 1)}
    deep = tiny(recursion_depth=3, **naive).eval()
    shallow = tiny(recursion_depth=2, **naive).eval()
    shallow.load_state_dict(deep.state_dict())
    image = torch.randn(2, 3, 64, 64)
    whole = deep(image)
    deep.set_steps(2)
    assert torch.equal(deep(image), shallow(image))
    assert deep.effective_depth == shallow.effective_depth == 8
    deep.set_steps(3)
    assert torch.equal(deep(image), whole)
    mixing = tiny(recursion_depth=3, steps=2)
    weights = mixing.routing_weights(image)[0]
    assert weights.shape[1] == 2
    torch.testing.assert_close(weights.sum(1), torch.ones_like(weights[:, 0]))
    with pytest.raises(ValueError, match="steps=4: must be 1 to recursion_depth=3"):
        deep.set_steps(4)


@pytest.mark.parametrize("settings", [{}, {"recursion_depth": 1}, {"window_size": 2}])
def test_a_pictures_output_does_not_depend_on_its_batch(tiny, settings):
    model = tiny(**settings).eval()
    images = torch.randn(3, 3, 64, 96)
    together = model.forward_features(images)
    images[1:] = 1e3
    others = model.forward_features(images)
    torch.testing.assert_close(together[0], others[0])
    torch.testing.assert_close(together[:1], model.forward_features(images[:1]))


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_distilled_pair_only_in_distilled_training(tiny, flag, training):
    """Field report 19."""
    model = tiny(distilled=True).train(training)
    model.set_distilled_training(flag)
    x = torch.randn(2, 3, 64, 64)
    tokens = model.forward_features(x)
    pair = model.head(tokens[:, 0]), model.head_dist(tokens[:, 1])
    for wrapped in (model, torch.compile(model, backend="eager")):
        output = wrapped(x)
        if flag and training:
            assert isinstance(output, tuple)
            torch.testing.assert_close(output, pair)
        else:
            torch.testing.assert_close(output, (pair[0] + pair[1]) / 2)


def test_distilled_training_needs_the_token(tiny):
    with pytest.raises(ValueError, match="distilled=True"):
        tiny().set_distilled_training()


@pytest.mark.parametrize("wrapper", ["ddp", "compiled", "ema"])
def test_wrappers_keep_the_pair_in_training_and_the_mean_in_evaluation(tiny, wrapper, tmp_path):
    """Field report 19."""
    model = tiny(distilled=True)
    image = torch.randn(2, 3, 64, 64)
    dist.init_process_group("gloo", f"file://{tmp_path}/init", rank=0, world_size=1)
    try:
        wrap = {
            "ddp": DistributedDataParallel,
            "compiled": lambda module: torch.compile(module, backend="eager"),
            "ema": lambda module: ModelEmaV3(module).module,
        }[wrapper]
        wrapped = wrap(model)
        pair = wrapped.train()(image)
        mean = wrapped.eval()(image)
    finally:
        dist.destroy_process_group()
    assert isinstance(pair, tuple)
    torch.testing.assert_close(mean, (pair[0] + pair[1]) / 2)


@pytest.mark.parametrize("settings", [{}, {"aggregation": "hard"}, {"share_blocks": False}])
def test_checkpointing_changes_nothing(tiny, settings):
    """Field report 9: the same gradients, drop path included."""
    results = []
    for enable in (False, True):
        model = tiny(recursion_depth=3, drop_path_rate=0.5, **settings).train()
        model.set_grad_checkpointing(enable)
        torch.manual_seed(1)
        output = model(torch.ones(4, 3, 64, 64))
        output.square().sum().backward()
        results.append([output, *(p.grad for p in model.parameters())])
    for plain, recomputed in zip(*results, strict=True):
        assert torch.equal(plain, recomputed)


def test_checkpointing_recomputes_every_block_application(tiny):
    model = tiny(recursion_depth=3)
    model.set_grad_checkpointing()
    calls = []
    for module in model.modules():
        if module.__class__.__name__ == "Block":
            module.register_forward_pre_hook(lambda *a: calls.append(1))
    model(torch.randn(1, 3, 64, 64)).sum().backward()
    assert len(calls) == 2 * model.effective_depth


def test_initialisation_is_deits(tiny):
    model = SRViT(recursion_depth=2)
    unit = model.blocks[1]
    for weight in (unit.blocks[0].attn.qkv.weight, unit.step_transforms[0].proj.weight,
                   unit.router.proj.weight, model.pos_embed, model.head.weight):  # fmt: skip
        assert 0.015 < weight.std() < 0.025
    assert all(p.abs().max() == 0 for n, p in model.named_parameters()
               if n.endswith("proj.bias") and "patch" not in n)  # fmt: skip
    nano = timm.create_model("srvit_nano_t3")
    assert 0.15 < nano.pos_embed.std() < 0.25
    assert nano.blocks[1].blocks[0].attn.qkv.weight.std() > 0.05  # 1 / sqrt(3 * 96)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"embed_dim": 33}, "num_heads"),
        ({"unit_depths": ()}, "unit_depths"),
        ({"unit_depths": (2, 0)}, "unit_depths"),
        ({"recursion_depth": 0}, "recursion_depth"),
        ({"aggregation": "none"}, "aggregation"),
        ({"global_pool": "max"}, "global_pool"),
        ({"distilled": True, "global_pool": "avg"}, "global_pool"),
        ({"init": "zeros"}, "init"),
    ],
)
def test_bad_arguments_are_named(tiny, settings, word):
    with pytest.raises(ValueError, match=word):
        tiny(**settings)


def test_unknown_variant_lists_the_known():
    with pytest.raises(ValueError, match=r"srvit_x.*srvit_s_t3"):
        variant_settings("srvit_x")
    assert set(VARIANTS) == set(timm.list_models("srvit_*"))
