"""What a model costs before it is trained: parameters, FLOPs, memory; and its real step."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import timm
import torch
from torch import Tensor, nn

from srvit_backbone.analysis.flops import count_gmacs
from srvit_backbone.analysis.memory import StepMemory
from srvit_backbone.any_model.open import build_detector, build_segmentor, is_segmentation
from srvit_backbone.errors import InputError
from srvit_backbone.srvit import SRViT
from srvit_backbone.training.fit import POLICIES
from srvit_backbone.variants import VARIANTS

# Pixels of the recipes.
SIZES = {"classifier": 224, "detector": 1024, "segmentor": 512}
OBJECTS = 20  # of a picture in a real step


@dataclass(frozen=True)
class Costed:
    """A variant, or a config of either framework.

    Attributes:
        name: As given.
        kind: "classifier", "detector" or "segmentor".
    """

    name: str
    kind: str

    @classmethod
    def of(cls, name: str) -> "Costed":
        """Tell what a name stands for.

        Raises:
            InputError: It is neither a variant nor a config file.
        """
        if name in VARIANTS:
            return cls(name, "classifier")
        if not Path(name).is_file():
            raise InputError(f"{name} is neither a config file nor one of {', '.join(VARIANTS)}")
        return cls(name, "segmentor" if is_segmentation(name) else "detector")

    def build(self, device: str = "cpu") -> nn.Module:
        """The model with random weights."""
        if self.kind == "segmentor":
            from mmengine.model import revert_sync_batchnorm

            return revert_sync_batchnorm(build_segmentor(self.name, device))
        with torch.device(device):
            if self.kind == "classifier":
                return timm.create_model(self.name)
            return build_detector(self.name, device)

    def flops(self, size: int) -> dict[str, float]:
        """FLOPs of one square image in units of 1e9, by how they are counted."""
        if self.kind == "classifier":
            return {"GMACs": count_gmacs(self.build("meta"), size, size)}
        if self.kind == "segmentor":
            from srvit_backbone.openmmlab.flops import count_gflops

            paper, computed = count_gflops(build_segmentor(self.name, "meta"), size, size)
            return {"GFLOPs, as the paper counts": paper, "GFLOPs, really computed": computed}
        from srvit_backbone.detectron2.flops import count_gflops as count_detector_gflops

        gmacs = count_detector_gflops(self.build(), size, size)
        return {"GMACs without attention's products": gmacs}

    def memory(
        self,
        size: int,
        batch: int,
        policy: str = "store",
        accumulate: bool = False,
        amp_dtype: torch.dtype | None = None,
    ) -> StepMemory:
        """Estimated memory of a training step with square images, and of inference on one."""
        model = self.build("meta")
        set_policy(model, policy)
        if self.kind == "classifier":
            from srvit_backbone.pretrain.fit import classifier_memory

            return classifier_memory(model, size, batch, accumulate, amp_dtype)
        if self.kind == "segmentor":
            from srvit_backbone.openmmlab.memory import segmentor_memory

            return segmentor_memory(model, size, size, batch, accumulate, amp_dtype)
        from srvit_backbone.detectron2.memory import detector_memory

        return detector_memory(model, size, size, batch, accumulate, amp_dtype)

    def train_step(self, size: int, batch: int, policy: str = "store", steps: int = 2) -> None:
        """Training steps with AdamW on random pictures, the real ones of the framework."""
        model = self.build().train()
        set_policy(model, policy)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(steps):
            optimizer.zero_grad()
            self._loss(model, size, batch).backward()
            optimizer.step()

    def _loss(self, model: Any, size: int, batch: int) -> Tensor:
        if self.kind == "classifier":
            return model(torch.randn(batch, 3, size, size)).square().mean()
        if self.kind == "segmentor":
            from srvit_backbone.openmmlab.memory import random_batch

            data = model.data_preprocessor(random_batch(model, size, batch), training=True)
            losses, _ = model.parse_losses(model.loss(**data))
            return losses
        from detectron2.utils.events import EventStorage

        from srvit_backbone.detectron2.memory import random_batch as random_detector_batch

        with EventStorage():
            losses = model(random_detector_batch(size, batch, OBJECTS))
        return torch.stack([*losses.values()]).sum()


def set_policy(model: nn.Module, policy: str) -> None:
    """Set the checkpointing policy, a key of ``fit.POLICIES``, of all SR-ViTs in a model."""
    for module in model.modules():
        if isinstance(module, SRViT):
            module.set_grad_checkpointing(POLICIES[policy])


def count_params(model: nn.Module) -> float:
    """Parameters in millions."""
    return sum(parameter.numel() for parameter in model.parameters()) / 1e6


def analyze(name: str, size: int | None) -> dict[str, float | str]:
    """Parameters (millions) and FLOPs (1e9) of a variant, a detector's or a segmentor's config."""
    model = Costed.of(name)
    size = size or SIZES[model.kind]
    params = count_params(model.build("meta"))
    return {"model": name, "size": size, "params": params, **model.flops(size)}
