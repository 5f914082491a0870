"""Another batch, a limit of memory: the recipe is kept in all three trainers."""

from functools import partial

import pytest
import timm
import torch
from conftest import ROOT, assert_one_line_error, own_data, run_tool
from detectron2.config import LazyConfig
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.registry import MODELS, init_default_scope
from torch import nn

from srvit_backbone.analysis.memory import step_memory
from srvit_backbone.detectron2 import fit as d2_fit
from srvit_backbone.errors import InputError
from srvit_backbone.openmmlab import fit as mm_fit
from srvit_backbone.openmmlab.memory import random_batch
from srvit_backbone.pretrain.fit import classifier_memory, fit_recipe
from srvit_backbone.pretrain.recipe import load_recipe
from srvit_backbone.training.fit import changes_table, parse_memory, parts_that_fit

GB = 10**9
DETECTION = ROOT / "detection/configs/mask_rcnn_srvit_demo.py"
SEGMENTATION = ROOT / "segmentation/configs/upernet_srvit_demo.py"


# --- memory -------------------------------------------------------------------------


def two_layers(images):
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(1000, 500, bias=False), nn.ReLU(), nn.Linear(500, 10))

    def step():
        return model(torch.zeros(images, 1000))

    return step_memory(model, step, step)


def test_memory_of_a_step_is_what_can_be_counted_by_hand():
    parameters = 4 * (500_000 + 5_010)
    picture, hidden = 4 * 3000 * 1000, 4 * 3000 * 500
    memory = two_layers(images=3000)
    # Inference: both hidden maps live at the ReLU, and the input as long as the step holds it.
    assert memory.inference == pytest.approx(parameters + picture + 2 * hidden, rel=0.01)
    # Training: beside AdamW's state the input and ReLU's output, with the gradients of both maps.
    assert memory.training == pytest.approx(3 * parameters + picture + 3 * hidden, rel=0.03)
    # Of one image the optimizer's step is the peak: weights, gradients, two averages, one more.
    assert two_layers(images=1).training == pytest.approx(5 * parameters, rel=0.01)


def estimate(images, policy, accumulate):
    """1 GB, and 1, 0.5 or 0.25 GB an image."""
    an_image = {"store": 1.0, "keep_attention": 0.5, "recompute": 0.25}[policy]
    return int(GB * (1 + an_image * images + 0.1 * accumulate))


@pytest.mark.parametrize(
    ("gigabytes", "images", "policy"),
    [(11, 8, "store"), (6, 4, "store"), (2.4, 1, "store"), (2.2, 1, "keep_attention")]
    + [(1.6, 1, "recompute")],
)
def test_as_little_is_recomputed_as_fits(gigabytes, images, policy):
    parts = parts_that_fit(8, int(gigabytes * GB), estimate)
    assert (parts.images, parts.policy) == (images, policy)
    assert parts.bytes == estimate(images, policy, images < 8) <= 0.9 * gigabytes * GB


def test_what_fits_nowhere_is_refused_with_the_need():
    with pytest.raises(InputError, match=r"need 1\.35 GB"):
        parts_that_fit(8, int(1.4 * GB), estimate)
    # Batch norm wants two: parts of one are not even tried.
    assert parts_that_fit(8, int(2.4 * GB), estimate, least=2).images == 2


@pytest.mark.parametrize(("text", "value"), [("12GB", 12e9), ("1.5 GiB", 1.5 * 2**30)])
def test_memory_is_read(text, value):
    assert parse_memory(text) == value


@pytest.mark.parametrize("text", ["12", "12 apples", "12KB", ""])
def test_other_words_for_memory_are_refused(text):
    with pytest.raises(InputError, match="12GB"):
        parse_memory(text)


def test_the_table_names_changes_only():
    assert changes_table([("lr", 1, 1)]).startswith("Fitting changed nothing")
    assert changes_table([("lr", 1, 1), ("batch", 4, 2)]).splitlines()[1:] == ["  batch  4 -> 2"]


# --- detection ----------------------------------------------------------------------


def test_detection_sees_as_many_images_at_the_recipes_rate():
    config = LazyConfig.load(str(DETECTION))
    table = d2_fit.fit_config(config, 2, "", processes=1)
    assert config.dataloader.train.total_batch_size == 2
    assert config.optimizer.lr == pytest.approx(5e-4)
    assert config.train.max_iter == 1200
    assert config.train.eval_period == config.train.checkpointer.period == 400
    assert config.lr_multiplier.warmup_length * 1200 == pytest.approx(100)
    assert "max_iter" in table
    assert "600 -> 1200" in table


def test_detection_within_a_limit_keeps_the_batch():
    config = LazyConfig.load(str(DETECTION))
    d2_fit.fit_config(config, None, "150MB", processes=1)
    assert config.dataloader.train.total_batch_size == 4
    assert config.optimizer.lr == 1e-3
    assert (config.train.max_batch_per_process, config.train.max_iter) == (2, 600)
    need = d2_fit.estimator(LazyConfig.load(str(DETECTION)))
    assert need(2, "store", True) <= 0.9 * 150e6 < need(4, "store", False)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--memory", "1MB"), ("too little", "smaller")),
        (("--memory", "much"), ("12GB",)),
        (("--batch", "-2"), ("batch of -2",)),
    ],
)
def test_detection_refuses_what_cannot_be(coins, tmp_path, option, words):
    process = run_tool(
        *("train_net.py", "--config-file", DETECTION, *option),
        *[f"own_data.{key}={path}" for key, path in own_data(coins).items()],
        f"train.output_dir={tmp_path / 'out'}",
    )
    assert_one_line_error(process, *words)
    assert not (tmp_path / "out").exists()


# --- segmentation -------------------------------------------------------------------


def segmentation_config():
    config = Config.fromfile(SEGMENTATION)
    init_default_scope(config.default_scope)
    return config


def test_segmentation_counts_an_iteration_for_every_part():
    config = segmentation_config()
    need = mm_fit.estimator(segmentation_config())
    assert need(2, "store", True) < need(4, "store", False)
    limit = f"{need(2, 'store', True) / 0.9 / 1e6 + 1:.0f}MB"
    table = mm_fit.fit_config(config, 8, limit)
    assert config.train_dataloader.batch_size == 2
    assert config.optim_wrapper.accumulative_counts == 4
    assert config.optim_wrapper.optimizer.lr == pytest.approx(2e-3)
    # Half as many steps of four parts each.
    assert (config.train_cfg.max_iters, config.train_cfg.val_interval) == (2000, 1000)
    assert config.default_hooks.checkpoint.interval == 1000
    assert [(s.begin, s.end) for s in config.param_scheduler] == [(0, 100), (100, 2000)]
    assert "1000 -> 2000" in table
    saved = config.to_dict()
    mm_fit.fit_config(config, 8, limit)  # the saved config of a run says what was run
    assert config.to_dict() == saved


def test_segmentation_needs_two_images_for_batch_norm():
    config = segmentation_config()
    mm_fit.fit_config(config, 4, "70MB")
    assert config.train_dataloader.batch_size == 2


class Recorder(torch.optim.SGD):
    """Keeps the gradients it was asked to apply."""

    def step(self, closure=None):
        self.gradients = [
            None if p.grad is None else p.grad.clone() for p in self.param_groups[0]["params"]
        ]


def test_segmentations_accumulated_gradient_is_the_whole_batchs():
    """4 x 2 images on the real segmentor; with group norm, as batch norm sees a part at a time."""
    config = segmentation_config()
    norm = {"type": "GN", "num_groups": 8}
    for part in (config.model.neck, config.model.decode_head, config.model.auxiliary_head):
        part.norm_cfg = norm
    for head in (config.model.decode_head, config.model.auxiliary_head):
        head.dropout_ratio = 0.0
    torch.manual_seed(0)
    model = MODELS.build(config.model).train()
    data = model.data_preprocessor(random_batch(model, 64, 8), training=True)
    optimizer = Recorder(model.parameters(), lr=1.0)
    wrapper = OptimWrapper(optimizer, accumulative_counts=4)
    wrapper.initialize_count_status(model, 0, 8)
    for start in range(0, 8, 2):
        samples = data["data_samples"][start : start + 2]
        loss, _ = model.parse_losses(model.loss(data["inputs"][start : start + 2], samples))
        wrapper.update_params(loss)
    model.zero_grad()
    loss, _ = model.parse_losses(model.loss(**data))
    loss.backward()
    for found, (name, parameter) in zip(optimizer.gradients, model.named_parameters(), strict=True):
        assert (found is None) == (parameter.grad is None), name
        if found is not None:
            torch.testing.assert_close(found, parameter.grad, atol=1e-5, rtol=1e-4, msg=name)


# --- pretraining --------------------------------------------------------------------


def test_pretraining_follows_its_own_rule_for_the_rate():
    recipe = load_recipe(ROOT / "pretrained/recipes", ["digits"], [])
    model = partial(timm.create_model, recipe.model, img_size=recipe.img_size)
    table = fit_recipe(recipe, model, 32, "", processes=1)
    assert (recipe.batch_size, recipe.lr, recipe.lr_batch_size) == (32, 2e-3, 64)
    assert "0.002 -> 0.001" in table
    with torch.device("meta"):
        classifier = model()
    need = classifier_memory(classifier, recipe.img_size, 8, accumulate=True).training
    fit_recipe(recipe, model, None, f"{need / 0.9e6 + 0.01:.2f}MB", processes=1)
    assert (recipe.batch_size, recipe.max_batch_per_process) == (32, 8)
    assert recipe.grad_checkpointing is False
