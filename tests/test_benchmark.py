"""tools/benchmark.py and tools/draw_charts.py: that they compare and draw what they say."""

import json

import pytest
import timm
import torch
from conftest import assert_one_line_error, run_tool
from PIL import Image

from srvit_backbone.analysis.peak_memory import run_alone
from srvit_backbone.studies.benchmark import cases, timing


def test_ratios_are_of_the_same_round():
    # The machine was three times slower in the second round: the ratio does not notice.
    assert timing.spread([2.0, 6.0, 3.0], [1.0, 3.0, 1.0]) == (2.0, 2.0, 3.0)


def allocate(mib):
    torch.ones(mib * 2**18)


def test_peak_memory_is_what_was_allocated():
    assert run_alone(allocate, 300)[0] == pytest.approx(300, abs=30)


def test_the_plain_stack_is_as_deep_and_wide_as_ours():
    ours = timm.create_model("srvit_s_t3", num_classes=0)
    ends = cases.step_ends(ours.unit_depths, ours.recursion_depth)
    plain = cases.plain_stack(224, ours.effective_depth, ends)
    blocks = [layer for layer in plain.blocks if not isinstance(layer, torch.nn.Linear)]
    assert (len(blocks), len(plain.blocks)) == (32, 40)
    # A linear map follows each of the first two steps of units of 4, 3, 2 and 1 blocks.
    assert ends == [4, 8, 15, 18, 23, 25, 28, 29]
    assert plain.embed_dim == ours.embed_dim


@pytest.mark.parametrize(("windowed", "expected"), [(False, 0), (True, 28)])
def test_detectron2s_vit_has_the_same_depth(windowed, expected):
    with torch.device("cpu"):
        model = cases.detectron2_vit(32, windowed)
    assert len(model.blocks) == 32
    assert sum(block.window_size > 0 for block in model.blocks) == expected
    assert hasattr(model.blocks[0].attn, "rel_pos_h") == windowed


def test_charts_are_drawn_from_the_results_in_the_repository(tmp_path):
    process = run_tool("draw_charts.py", "--output", tmp_path)
    assert process.returncode == 0, process.stderr
    for name in ("accuracy", "speed", "memory"):
        assert Image.open(tmp_path / f"{name}.png").size[0] > 800


def test_charts_need_results(tmp_path):
    results = tmp_path / "results.json"
    process = run_tool("draw_charts.py", "--benchmark", results, "--output", tmp_path / "out")
    assert_one_line_error(process, "results.json", "benchmark.py")
    results.write_text(json.dumps({"throughput": {}}))
    process = run_tool("draw_charts.py", "--benchmark", results, "--output", tmp_path / "out")
    assert_one_line_error(process, "memory")
