"""Checkpoints of a detector: written whole, read safely, loaded completely or not at all."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from detectron2.checkpoint import DetectionCheckpointer
from detectron2.engine import hooks
from torch import nn

from srvit_backbone.checkpoint import CheckpointError, load_checkpoint, read, unwrap
from srvit_backbone.srvit import SRViT
from srvit_backbone.training.class_names import class_change

logger = logging.getLogger(__name__)

BEST = "model_best"
# In the names of tensors with a part for each class: of R-CNNs; of RetinaNet and FCOS.
CLASS_HEADS = ("predictor.", "head.cls_score.")


class RunCheckpointer(DetectionCheckpointer):
    """Checkpoints of a run: written whole or not at all, read without running code, all or nothing.

    ``last_checkpoint`` names the newest checkpoint of the run; the best one is kept apart, so that
    a run resumes from where it was.

    Args:
        model: The detector.
        save_dir: The run's folder, empty to write nothing.
        class_names: Of the data; saved, and compared with those of a file that is loaded.
    """

    def __init__(
        self, model: nn.Module, save_dir: str = "", class_names: Sequence[str] = ()
    ) -> None:
        super().__init__(model, save_dir)
        self.class_names = list(class_names)

    def save(self, name: str, **extra: Any) -> None:
        """Write ``name``.pth with the model and everything that is checkpointed with it."""
        if not self.save_dir or not self.save_to_disk:
            return
        state = {key: item.state_dict() for key, item in self.checkpointables.items()}
        content = {
            "model": self.model.state_dict(),
            "class_names": self.class_names,
            **state,
            **extra,
        }
        path = Path(self.save_dir, f"{name}.pth")
        self.logger.info("Saving checkpoint to %s", path)
        unfinished = path.with_suffix(".unfinished")
        torch.save(content, unfinished)
        os.replace(unfinished, path)
        if name != BEST:
            self.tag_last_checkpoint(path.name)

    def tag_last_checkpoint(self, last_filename_basename: str) -> None:
        """Name the newest checkpoint."""
        unfinished = Path(self.save_dir, "last_checkpoint.unfinished")
        unfinished.write_text(last_filename_basename)
        os.replace(unfinished, Path(self.save_dir, "last_checkpoint"))

    def _torch_load(self, f: str) -> Any:
        return read(f)

    def _load_model(self, checkpoint: dict[str, Any]) -> Any:
        change = class_change(checkpoint.pop("class_names", None), self.class_names)
        if change:
            raise CheckpointError(f"the checkpoint's classes are not the data's: {change}")
        result = super()._load_model(checkpoint)
        check_complete(result, "the checkpoint")
        return result


class BestCheckpointer(hooks.BestCheckpointer):
    """Detectron2's hook, remembering the best value when a run is resumed."""

    def state_dict(self) -> dict[str, Any]:
        """The best value so far and its iteration."""
        return {"best_metric": self.best_metric, "best_iter": self.best_iter}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Counterpart of ``state_dict``."""
        self.best_metric, self.best_iter = state_dict["best_metric"], state_dict["best_iter"]


def check_complete(result: Any, source: str) -> None:
    """Raise CheckpointError if Detectron2 left out a tensor, on either side."""
    problems = [
        *(
            f"{name} is {shape}, the model's is {own}"
            for name, shape, own in result.incorrect_shapes
        ),
        *(f"{name} is missing" for name in result.missing_keys),
        *(f"{name} is unknown to the model" for name in result.unexpected_keys),
    ]
    if problems:
        more = f" and {len(problems) - 4} more" if len(problems) > 4 else ""
        raise CheckpointError(f"{source} does not fit the model: {', '.join(problems[:4])}{more}")


def load_initial_weights(
    model: nn.Module,
    path: str,
    warm_start: bool | str = False,
    class_names: Sequence[str] = (),
) -> None:
    """Start a detector from a backbone's file, or from that of a whole detector.

    Of a detector's file all tensors have to match, class heads of other classes apart: those keep
    their initial values, be it another number of classes or as many others.

    Args:
        model: The detector, with one SR-ViT backbone.
        path: A file of any form that ``srvit_backbone.checkpoint`` reads.
        warm_start: Accept a plain ViT's blocks in a recursive backbone; True or one of
            ``plain_vit.WARM_STARTS``.
        class_names: Of the data, compared with those in the file if it names any.

    Raises:
        CheckpointError: The file is missing or damaged, or does not fit.
    """
    if not os.path.isfile(path):
        raise CheckpointError(
            f"no initial weights at {path}: put them there (pretrained/README.md says how they are "
            "made), name others with train.init_checkpoint=FILE, or start from scratch with "
            "train.init_checkpoint=''"
        )
    content = read(path)
    state, _ = unwrap(content)
    own = model.state_dict()
    if any(name in own and not name.startswith("backbone.") for name in state):
        change = class_change(content.get("class_names"), class_names)
        for name in [n for n in state if n in own and any(part in n for part in CLASS_HEADS)]:
            if change or state[name].shape != own[name].shape:
                logger.warning(
                    "%s: %s is of other classes and not loaded%s",
                    path,
                    name,
                    change and f": {change}",
                )
                state[name] = own[name]
        result = DetectionCheckpointer(model)._load_model({"model": state})
        check_complete(result, path)
        return
    backbones = [module for module in model.modules() if isinstance(module, SRViT)]
    load_checkpoint(backbones[0], content, warm_start=warm_start, name=path)
