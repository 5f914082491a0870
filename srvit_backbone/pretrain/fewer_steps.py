"""Accuracy of a trained classifier that runs only the first steps of its recursion."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch.distributed as dist
from torch import nn

from srvit_backbone.analysis.flops import count_gmacs
from srvit_backbone.pretrain.build import build_model
from srvit_backbone.pretrain.data import build_data
from srvit_backbone.pretrain.processes import start_process_group
from srvit_backbone.pretrain.recipe import load_yaml, plan_batch
from srvit_backbone.pretrain.trainer import Trainer, best_weights


@dataclass(frozen=True)
class Accuracy:
    """Of a number of steps: depth run, GMACs, top-1 and top-5 in percent."""

    steps: int
    depth: int
    gmacs: float
    top1: float
    top5: float


def accuracy_by_steps(run: Path, data: str = "") -> Iterator[Accuracy]:
    """Evaluate a run's best weights with 1, 2, ... T steps on its validation images.

    Args:
        run: Folder of a run of tools/train_imagenet.py.
        data: Another place of its data.

    Raises:
        InputError: The folder holds no run, or the data are missing.
    """
    weights = best_weights(run)
    recipe = load_yaml(run / "recipe.yaml")
    recipe.init, recipe.data = str(weights), data or recipe.data
    device = start_process_group()
    try:
        plan = plan_batch(recipe, dist.get_world_size())
        loaders = build_data(recipe, plan.images, device, train=False)
        model = build_model(recipe, loaders.num_classes).to(device)
        trainer = Trainer(recipe, model, nn.Identity(), loaders, plan, run)
        for steps in range(1, model.recursion_depth + 1):
            model.set_steps(steps)
            top1, top5 = trainer.evaluate(model)
            gmacs = count_gmacs(model, recipe.img_size, recipe.img_size)
            yield Accuracy(steps, model.effective_depth, gmacs, top1, top5)
    finally:
        dist.destroy_process_group()
