"""Model and loss of a recipe."""

from typing import Any

import timm
from omegaconf import DictConfig
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import nn

from srvit_backbone.checkpoint import load_checkpoint
from srvit_backbone.pretrain.distill import HardDistillation, base_loss, build_teacher


def create_model(recipe: DictConfig, num_classes: int = 1000) -> Any:
    """The classifier with random weights."""
    model = timm.create_model(
        recipe.model,
        num_classes=num_classes,
        img_size=recipe.img_size,
        drop_path_rate=recipe.drop_path,
        distilled=recipe.distilled,
    )
    model.set_grad_checkpointing(recipe.grad_checkpointing)
    return model


def build_model(recipe: DictConfig, num_classes: int) -> Any:
    """The classifier, with the initial weights if the recipe names some."""
    model = create_model(recipe, num_classes)
    if recipe.init:
        load_checkpoint(model, recipe.init, warm_start=recipe.warm_start)
    return model


def build_loss(recipe: DictConfig, mixed: bool, num_classes: int) -> nn.Module:
    """The loss of a recipe."""
    loss = base_loss(mixed, recipe.label_smoothing)
    if not recipe.teacher:
        return loss
    teacher = build_teacher(recipe.teacher, recipe.teacher_weights, num_classes)
    return HardDistillation(loss, teacher, IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD)
