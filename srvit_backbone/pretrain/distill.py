"""Losses, and DeiT's hard-label distillation (section D.1)."""

from typing import Any

import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from torch import Tensor, nn

from srvit_backbone.checkpoint import read, unwrap
from srvit_backbone.errors import InputError


def base_loss(mixed: bool, smoothing: float) -> nn.Module:
    """Cross entropy: on mixup's soft targets (which are smoothed already), or on labels."""
    if mixed:
        return SoftTargetCrossEntropy()
    return LabelSmoothingCrossEntropy(smoothing) if smoothing else nn.CrossEntropyLoss()


class HardDistillation(nn.Module):
    """Mean of two losses: class head against targets, distillation head against the teacher's.

    Args:
        base: Loss of the class head.
        teacher: Classifier whose best class is the label; stays in evaluation mode, without
            gradient.
        mean: Mean of the student's images, per channel.
        std: Their standard deviation.
        alpha: Weight of the teacher's labels; DeiT's is one half.
    """

    def __init__(
        self,
        base: nn.Module,
        teacher: nn.Module,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        alpha: float = 0.5,
    ) -> None:
        super().__init__()
        self.base, self.alpha = base, alpha
        self.teacher = teacher.eval().requires_grad_(False)
        own_mean, own_std = (torch.tensor(v).view(1, -1, 1, 1) for v in (mean, std))
        settings = getattr(teacher, "pretrained_cfg", {})
        his_mean, his_std = (
            torch.tensor(settings.get(key, value)).view(1, -1, 1, 1)
            for key, value in (("mean", mean), ("std", std))
        )
        # The same pixels in the teacher's own normalisation.
        self.scale: Tensor
        self.shift: Tensor
        self.register_buffer("scale", own_std / his_std)
        self.register_buffer("shift", (own_mean - his_mean) / his_std)

    def train(self, mode: bool = True) -> "HardDistillation":
        """Set the mode; the teacher stays in evaluation mode."""
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, images: Tensor, outputs: Any, targets: Tensor) -> Tensor:
        """Images (B, 3, H, W), the student's pair of logits (B, classes), targets -> loss.

        Raises:
            InputError: The student gave one tensor: it is not distilled.
        """
        if not isinstance(outputs, tuple):
            raise InputError("distillation needs a student with distilled=true, in training mode")
        with torch.no_grad():
            labels = self.teacher(images * self.scale + self.shift).argmax(dim=1)
        class_loss = self.base(outputs[0], targets)
        teacher_loss = nn.functional.cross_entropy(outputs[1], labels)
        return (1 - self.alpha) * class_loss + self.alpha * teacher_loss


def build_teacher(name: str, weights: str, num_classes: int) -> nn.Module:
    """A timm model as teacher.

    Args:
        name: Its name in timm.
        weights: A local file, or "" for timm's own.
        num_classes: Classes of the data, which have to be the teacher's.

    Raises:
        InputError: There is no such model, its weights cannot be had, or it has other classes.
    """
    if not timm.is_model(name):
        raise InputError(f"timm has no model {name}")
    if weights:
        state, _ = unwrap(read(weights))
        heads = [value.shape[0] for key, value in state.items() if value.ndim == 1]
        teacher = timm.create_model(name, num_classes=heads[-1])
        try:
            teacher.load_state_dict(state)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"{weights} is not of {name}: {reason}") from error
    else:
        try:
            teacher = timm.create_model(name, pretrained=True)
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(
                f"the weights of {name} cannot be fetched ({type(error).__name__}): download them "
                "and set teacher_weights=FILE"
            ) from error
    if teacher.num_classes != num_classes:
        raise InputError(
            f"the teacher {name} has {teacher.num_classes} classes, the data {num_classes}"
        )
    return teacher
