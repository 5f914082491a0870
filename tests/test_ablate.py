"""tools/ablate.py: the grid, the small task, and a run that is stopped and goes on."""

import json

import numpy as np
import pytest
import torch
from conftest import ROOT, assert_one_line_error, run_tool
from detectron2.config import instantiate

from srvit_backbone.detectron2.config import load_config
from srvit_backbone.studies import ablation, ablation_table, cluttered_digits

CELLS = ("DeiT, T=1", "Hard selection, T=2")


def test_the_grid_has_every_cell_of_figure_3_and_tables_5_and_6():
    cells = ablation.grid()
    models = {
        label: cluttered_digits.build(ablation.settings_of(cell, (4, 3, 2, 1)))
        for label, cell in cells.items()
    }
    depths = {label: model.effective_depth for label, model in models.items()}
    assert sorted(set(depths.values())) == [12, 22, 32, 42]
    assert models["Naive, one coarse unit, T=2"].unit_depths == (10,)
    assert models["Naive, fine units, T=2"].unit_depths == (1,) * 10
    assert models["Naive, fine-to-coarse units, T=2"].unit_depths == (1, 2, 3, 4)
    assert models["Naive recursion, T=2"].unit_depths == (4, 3, 2, 1)
    # All differ in what they compute or hold.
    settings = [json.dumps(ablation.settings_of(c, (4, 3, 2, 1))) for c in cells.values()]
    assert len(set(settings)) == len(cells) == 16


def test_a_cell_reaches_the_detectors_backbone():
    for cell in ablation.grid().values():
        config = load_config(str(ROOT / ablation.COINS_CONFIG), ablation.coins_overrides(cell))
        net = instantiate(config.model.backbone.net)
        settings = ablation.settings_of(cell, ablation.COINS_UNITS)
        reference = cluttered_digits.build({**settings, "embed_dim": 96, "num_heads": 3})
        assert net.unit_depths == reference.unit_depths
        assert net.effective_depth == reference.effective_depth
        names = {name for name, _ in net.named_parameters()}
        assert names == {n for n, _ in reference.named_parameters() if not n.startswith("head.")}


def test_a_table_of_cells_that_the_paper_does_not_print():
    """Whichever cell comes first."""
    cells = list(ablation.grid().values())[-10:]
    scores = {cell["label"]: [50.0, 51.0] for cell in cells}
    assert cells[0]["top1"] is None
    assert ablation_table.table(cells, scores, "AP").count("not printed") == 1
    assert "| 81.12 |  |" in ablation_table.table(cells, scores, "AP")


def test_test_digits_are_never_trained_on():
    train, test = cluttered_digits.load_digits()
    for members, held_out in zip(train, test, strict=True):
        assert len(members) == cluttered_digits.TRAIN_DIGITS_PER_CLASS
        known = {digit.tobytes() for digit in members}
        assert not known & {digit.tobytes() for digit in held_out}


def test_scenes_show_the_digit_of_their_label():
    """Without clutter a scene is its digit, shifted."""
    train, _ = cluttered_digits.load_digits()
    scene = cluttered_digits.scenes(train, np.array([3]), np.array([5]), np.random.default_rng(0))
    pixels = scene[0, 0] * 0.35 + 0.25
    digit = torch.from_numpy(train[3][5])
    windows = pixels.unfold(0, 20, 1).unfold(1, 20, 1)
    same = ((windows - digit).abs() < 1e-5).float().mean(dim=(2, 3))
    assert same.max() > 0.8  # all but the piece in front


def test_separation_tells_cells_from_seeds():
    apart = {"a": [70.0, 71.0, 70.5], "b": [80.0, 81.0, 80.5]}
    alike = {"a": [70.0, 75.0, 80.0], "b": [71.0, 74.0, 79.0]}
    assert "The cells separate" in ablation_table.separation(apart)
    assert "do NOT separate" in ablation_table.separation(alike)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(cluttered_digits, "STEPS", 20)
    monkeypatch.setattr(cluttered_digits, "WARMUP", 5)
    monkeypatch.setattr(cluttered_digits, "TEST_SCENES_PER_DIGIT", 1)


def test_a_cell_is_the_same_each_time_and_seeds_differ(short):
    settings = {"recursion_depth": 2}
    first, again = (cluttered_digits.train_and_test(settings, 1) for _ in range(2))
    assert first == again
    scores = {first, *(cluttered_digits.train_and_test(settings, seed) for seed in (2, 3))}
    assert len(scores) > 1


def test_kept_scores_are_used_and_others_refused(tmp_path):
    """A file stands for its training; one of other settings is not mixed in."""
    folder = tmp_path / "digits"
    folder.mkdir()
    grid = ablation.grid()
    for number, label in enumerate(CELLS):
        for seed in (0, 1):
            result = {"cell": grid[label], "task": ablation.task_of("digits"), "seed": seed}
            result["score"] = 70.0 + 10 * number + seed
            ablation.file_of(folder, label, seed).write_text(json.dumps(result))
    command = ("--suite", "digits", "--seeds", 2, "--output", tmp_path, "--cells", *CELLS)
    process = run_tool("ablate.py", *command)
    assert process.returncode == 0, process.stderr
    assert "4 trainings, 4 of them done before" in process.stdout
    assert "| DeiT, T=1 | 70.5 ± 0.7 | +0.0 | 79.83 | +0.00 |" in process.stdout
    assert "| Hard selection, T=2 | 80.5 ± 0.7 | +10.0 | 81.79 | +1.96 |" in process.stdout
    blind = run_tool("ablate.py", *command, "--blind")
    assert "Hard" not in blind.stdout
    path = ablation.file_of(folder, CELLS[1], 1)
    path.write_text(path.read_text().replace('"STEPS": 1000', '"STEPS": 10'))
    assert_one_line_error(run_tool("ablate.py", *command), path.name, "other settings")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cells", "Nothing"), "no cell Nothing"),
        (("--seeds", 0), "--seeds must be 1 or more"),
    ],
)
def test_bad_input_is_one_line(tmp_path, options, words):
    process = run_tool("ablate.py", "--suite", "digits", "--output", tmp_path, *options)
    assert_one_line_error(process, words)
