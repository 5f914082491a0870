"""Mixture weights and CKA: right numbers, right place, right way up."""

import csv

import numpy as np
import pytest
import torch
from conftest import assert_one_line_error, run_tool
from PIL import Image

from srvit_backbone.analysis.cka import DepthRecorder, compare, depth_labels, hsic
from srvit_backbone.analysis.inputs import to_input
from srvit_backbone.analysis.routing import blend, colours, mixture_maps, shade
from srvit_backbone.soft_mor import RecursiveUnit

# --- mixture weights ----------------------------------------------------------------


def picture(height, width):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


def test_maps_are_what_the_forward_pass_mixes_with(tiny):
    model = tiny(recursion_depth=3).eval()
    image = picture(80, 100)
    used = []
    for block in model.blocks:
        if isinstance(block, RecursiveUnit):
            block.router.register_forward_hook(lambda m, i, output: used.append(output))
    model(to_input(image))
    mixed_with = [weights.detach() for weights in used]
    maps = mixture_maps(model, image)
    assert len(maps) == len(mixed_with) == 2
    for found, weights in zip(maps, mixed_with, strict=True):
        assert found.shape == (3, 80, 100)
        np.testing.assert_allclose(found.sum(0), 1, atol=1e-6)
        grid = weights[0, 1:].T.reshape(3, 5, 7).numpy()
        np.testing.assert_array_equal(found[:, ::16, ::16], grid)
        np.testing.assert_array_equal(found[:, 15::16, 15::16], grid[:, :, :6])


def test_hard_selection_is_one_hot(tiny):
    maps = mixture_maps(tiny(aggregation="hard").eval(), picture(64, 96))
    for found in maps:
        assert set(np.unique(found)) <= {0.0, 1.0}
        assert (found.sum(0) == 1).all()


def test_a_marked_corner_shows_in_that_corner(tiny):
    """Top right of a wide picture; tokens see only themselves before the first unit's router."""
    model = tiny().eval()
    with torch.no_grad():
        model.pos_embed.zero_()
        for parameter in model.blocks[0].attn.proj.parameters():
            parameter.zero_()
    plain = np.full((64, 160, 3), 120, np.uint8)
    marked = plain.copy()
    marked[:16, -16:] = picture(16, 16)
    difference = np.abs(mixture_maps(model, marked)[0] - mixture_maps(model, plain)[0]).max(0)
    assert difference[:16, -16:].min() > 1e-4
    difference[:16, -16:] = 0
    assert difference.max() < 1e-6


def test_blending_and_shading():
    maps = np.zeros((3, 2, 2))
    maps[0, 0], maps[2, 1] = 1, 1
    mixed = blend(maps)
    np.testing.assert_allclose(mixed[0, 0], colours(3)[0])
    np.testing.assert_allclose(mixed[1, 1], colours(3)[2])
    np.testing.assert_allclose(shade(np.zeros((1, 1)), colours(1)[0]), 1)


def test_step_colours_differ_in_grey():
    grey = np.sort(colours(4) @ [0.299, 0.587, 0.114])
    assert np.diff(grey).min() > 0.1


def test_visualize_router(tmp_path):
    for index in range(2):
        Image.fromarray(picture(60 + index, 130)).save(tmp_path / f"{index}.png")
    target = tmp_path / "out" / "router.png"
    process = run_tool(
        *("visualize_router.py", "srvit_nano_t3", "--unit", "all"),
        *("--input", tmp_path, "--output", target),
    )
    assert process.returncode == 0, process.stderr
    assert Image.open(target).size[0] > 1000
    numbers = np.load(target.with_suffix(".npz"))
    assert sorted(numbers) == [f"{i}.png/unit {u} of 2" for i in range(2) for u in (1, 2)]
    assert numbers["1.png/unit 2 of 2"].shape == (3, 61, 130)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["srvit_deit_s"], ["T = 1"]),
        (["srvit_nano_t3", "--unit", "7"], ["--unit 7", "1 to 2"]),
        (["srvit_x"], ["srvit_x"]),
    ],
)
def test_visualize_router_bad_input(options, words, tmp_path):
    Image.fromarray(picture(32, 32)).save(tmp_path / "a.png")
    target = tmp_path / "router.png"
    process = run_tool(
        "visualize_router.py", *options, "--input", tmp_path / "a.png", "--output", target
    )
    assert_one_line_error(process, *words)
    assert not target.exists()


# --- CKA ----------------------------------------------------------------------------


def test_cka_of_a_model_with_itself(tiny):
    model = tiny(recursion_depth=2).eval()
    matrix = compare(model, model, [torch.randn(6, 3, 64, 64) for _ in range(3)])
    assert matrix.shape == (model.effective_depth, model.effective_depth)
    torch.testing.assert_close(matrix.diagonal(), torch.ones(8).double())
    torch.testing.assert_close(matrix, matrix.T)
    assert matrix.min() < 0.999


def test_hsic_equals_the_definition():
    features = torch.randn(2, 7, 5).double()
    grams = features @ features.transpose(1, 2)
    first, second = (gram - gram.diag().diag() for gram in grams)
    ones = torch.ones(7).double()
    expected = (
        (first @ second).trace()
        + (ones @ first @ ones) * (ones @ second @ ones) / (6 * 5)
        - 2 / 5 * (ones @ first @ second @ ones)
    ) / (7 * 4)
    torch.testing.assert_close(hsic(grams[:1], grams[1:])[0, 0], expected)


def test_cka_is_invariant_to_rotation_and_scale_and_not_to_the_rest():
    one, other = torch.randn(2, 9, 6).double()
    rotation = torch.linalg.qr(torch.randn(6, 6).double())[0]

    def cka(a, b):
        a, b = (x[None] @ x[None].transpose(1, 2) for x in (a, b))
        return (hsic(a, b) / (hsic(a, a) * hsic(b, b)).sqrt()).item()

    assert cka(one, 3.7 * one @ rotation) == pytest.approx(1, abs=1e-9)
    assert cka(3.7 * one @ rotation, other) == pytest.approx(cka(one, other), abs=1e-9)
    assert cka(one, other) < 0.9


def test_minibatches_average_over_batches_and_equal_the_direct_computation(tiny):
    first, second = tiny(recursion_depth=2).eval(), tiny(recursion_depth=1, embed_dim=16).eval()
    batches = [torch.randn(5, 3, 64, 64) for _ in range(2)]
    matrix = compare(first, second, batches)
    grams = [[DepthRecorder(m)(batch) for batch in batches] for m in (first, second)]
    for i in range(first.effective_depth):
        for j in range(second.effective_depth):
            a = [g[i : i + 1] for g in grams[0]]
            b = [g[j : j + 1] for g in grams[1]]
            cross, aa, bb = (
                sum(hsic(x, y) for x, y in zip(left, right, strict=True)).item()
                for left, right in ((a, b), (a, a), (b, b))
            )
            assert matrix[i, j].item() == pytest.approx(cross / (aa * bb) ** 0.5, abs=1e-5)


def test_depths_are_the_outputs_of_the_blocks_in_order(tiny):
    model = tiny(recursion_depth=1).eval()
    image = torch.randn(4, 3, 64, 64)
    features = model.forward_intermediates(
        image, output_fmt="NLC", return_prefix_tokens=True, intermediates_only=True
    )
    for gram, (patches, prefix) in zip(DepthRecorder(model)(image), features, strict=True):
        tokens = torch.cat([prefix, patches], 1).flatten(1).double()
        torch.testing.assert_close(gram, tokens @ tokens.T)


def test_labels_name_units_and_steps(tiny):
    labels = depth_labels(tiny(recursion_depth=2))
    one, two = [("unit 1", 1)] * 2 + [("unit 1", 2)] * 2, [("unit 2", 1), ("unit 2", 2)]
    assert labels == [("first", 1), *one, *two, ("last", 1)]
    assert len(depth_labels(tiny(unit_depths=(4, 3, 2, 1), recursion_depth=1))) == 12


def test_compare_depths(tmp_path):
    for index in range(9):
        image = np.random.default_rng(index).integers(0, 256, (40, 50, 3), np.uint8)
        Image.fromarray(image).save(tmp_path / f"{index}.png")
    target = tmp_path / "out" / "depths.png"
    process = run_tool(
        *("compare_depths.py", "srvit_nano_t3", "--second", "srvit_nano_t2", "--batch", 4),
        *("--input", tmp_path, "--size", 64, "--output", target),
    )
    assert process.returncode == 0, process.stderr
    assert "1 pictures left over" in process.stdout
    rows = list(csv.reader(target.with_suffix(".csv").open()))
    assert (len(rows), len(rows[0])) == (1 + 11, 1 + 8)
    assert Image.open(target).size[0] > 500


def test_too_few_pictures_are_one_line(tmp_path):
    Image.fromarray(picture(32, 32)).save(tmp_path / "a.png")
    process = run_tool(
        *("compare_depths.py", "srvit_nano_t3"),
        *("--input", tmp_path, "--output", tmp_path / "x.png"),
    )
    assert_one_line_error(process, "at least 4")
