"""tools/analyze_model.py: the paper's tables, counted from VARIANTS and the shipped configs."""

import csv
import io
import json

import pytest
from conftest import assert_one_line_error, run_tool
from paper import FIGURES

from srvit_backbone import VARIANTS, SRViT
from srvit_backbone.analysis.flops import count_gmacs


def test_gmacs_equal_the_closed_formula(tiny):
    """Two models that differ by one step: blocks, step transform, router and mixture."""
    dim, tokens, applications = 32, 17, 3
    block = 12 * tokens * dim**2 + 2 * tokens**2 * dim
    linear = tokens * dim**2
    router_row = tokens * dim
    mixture = tokens * dim
    extra = applications * block + 2 * (linear + router_row + mixture)
    counts = [count_gmacs(tiny(recursion_depth=t), 64, 64) * 1e9 for t in (2, 3)]
    assert counts[1] - counts[0] == pytest.approx(extra, rel=1e-9)


def test_counting_leaves_the_model_fused():
    model = SRViT()
    count_gmacs(model, 32, 32)
    assert all(block.attn.fused_attn for block in (model.blocks[0], model.blocks[-1]))


def test_tables_2_3_5_match_but_for_the_explained():
    process = run_tool("analyze_model.py", "--tables", 2, 3, 5, "--check")
    assert process.returncode == 0, process.stdout + process.stderr
    assert "43 of 45 figures match" in process.stdout
    assert process.stdout.count("✗") == 2
    assert "DeiT-B, FLOPs 224: ours 17.6, paper 17.5" in process.stdout


@pytest.mark.slow
def test_all_tables_70_of_73():
    process = run_tool("analyze_model.py", "--check")
    assert process.returncode == 0, process.stdout + process.stderr
    assert "70 of 73 figures match" in process.stdout


def test_check_fails_when_a_variant_changes(monkeypatch):
    monkeypatch.setitem(VARIANTS, "srvit_t_t3", {"unit_depths": (3, 2, 2), "recursion_depth": 3})
    process = run_tool("analyze_model.py", "--tables", 3, "--check")
    assert process.returncode == 1
    assert "NOT EXPLAINED" in process.stdout


def test_csv_and_json_hold_the_same_figures():
    outputs = [
        run_tool("analyze_model.py", "--tables", 5, "--format", name) for name in ("csv", "json")
    ]
    rows = list(csv.DictReader(io.StringIO(outputs[0].stdout)))
    figures = json.loads(outputs[1].stdout)
    assert len(rows) == len(figures) == 2 * len(FIGURES["ablation"])
    for row, figure in zip(rows, figures, strict=True):
        assert float(row["ours"]) == pytest.approx(figure["ours"], abs=1e-4)
        assert float(row["paper"]) == figure["paper"]


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [
        ("srvit_s_t3", 384, ["params: 23.2", "GMACs: 41.7"]),
        (
            "segmentation/configs/upernet_srvit_s_t2.py",
            512,
            ["params: 37.5", ": 285.93", ": 280.69"],
        ),
        ("detection/configs/mask_rcnn_srvit_demo.py", 192, ["size: 192"]),
    ],
)
def test_one_model(name, size, words):
    process = run_tool("analyze_model.py", "--config", name, "--size", size)
    assert process.returncode == 0, process.stderr
    for word in words:
        assert word in process.stdout


def test_an_unknown_config_is_one_line():
    process = run_tool("analyze_model.py", "--config", "srvit_x")
    assert_one_line_error(process, "srvit_x", "srvit_s_t3")
