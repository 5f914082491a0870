"""Training of a recipe: epochs, evaluation, checkpoints; exact resume from the last epoch.

Everything random in an epoch is seeded from (seed, epoch, process), so an epoch that was cut short
is run again just as it was.
"""

import csv
import logging
import math
import os
import random
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from omegaconf import DictConfig
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import ModelEmaV3
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from srvit_backbone.checkpoint import CheckpointError, read
from srvit_backbone.errors import InputError
from srvit_backbone.pretrain.data import Data, own_share
from srvit_backbone.pretrain.distill import HardDistillation
from srvit_backbone.pretrain.recipe import BatchPlan

logger = logging.getLogger(__name__)

COLUMNS = ("epoch", "lr", "train_loss", "top1", "top5", "ema_top1")


def best_weights(folder: Path) -> Path:
    """The best checkpoint of a run's folder.

    Raises:
        InputError: The folder holds no run.
    """
    path = folder / "best.pth"
    if not path.is_file():
        raise InputError(f"{folder} holds no best.pth: it is no run of tools/train_imagenet.py")
    return path


class Trainer:
    """A model in training, with all that a checkpoint of it holds.

    Args:
        recipe: The resolved recipe.
        model: The student, on its device.
        loss: Of (outputs, targets); HardDistillation also takes the images.
        data: Loaders.
        plan: How a step's images are spread.
        folder: Where checkpoints and logs go.
    """

    def __init__(
        self,
        recipe: DictConfig,
        model: nn.Module,
        loss: nn.Module,
        data: Data,
        plan: BatchPlan,
        folder: Path,
    ) -> None:
        self.recipe, self.loss, self.data, self.plan, self.folder = recipe, loss, data, plan, folder
        self.model = model
        self.device = next(model.parameters()).device
        # Before wrapping: the model itself says what is not decayed.
        self.optimizer = create_optimizer_v2(
            model,
            opt=recipe.optimizer,
            lr=recipe.lr * recipe.batch_size / recipe.lr_batch_size,
            weight_decay=recipe.weight_decay,
        )
        self.scheduler, _ = create_scheduler_v2(
            self.optimizer,
            sched="cosine",
            num_epochs=recipe.epochs,
            warmup_epochs=recipe.warmup_epochs,
            warmup_lr=recipe.warmup_lr,
            min_lr=recipe.min_lr,
        )
        on_gpu = self.device.type == "cuda"
        self.amp_dtype = getattr(torch, recipe.amp) if on_gpu and recipe.amp != "none" else None
        self.scaler = torch.amp.GradScaler(
            self.device.type, enabled=self.amp_dtype == torch.float16
        )
        self.ema = ModelEmaV3(model, decay=recipe.ema) if recipe.ema else None
        device_ids = [self.device.index] if on_gpu else None
        self.parallel: Any = DistributedDataParallel(model, device_ids=device_ids)
        if recipe.compile:
            self.parallel = torch.compile(self.parallel)
        self.memory_format = (
            torch.channels_last if recipe.channels_last else torch.contiguous_format
        )
        self.steps = len(data.train) // plan.accumulation if data.train is not None else 0
        self.epoch = 0
        self.best = -math.inf  # so that the first epoch is the best so far, whatever it gives
        self.rows: list[dict[str, Any]] = []

    # --- training ------------------------------------------------------------------

    def train(self) -> None:
        """All epochs that are left.

        Raises:
            InputError: The loss is no longer finite.
        """
        from torch.utils.tensorboard import SummaryWriter

        if not self.steps:
            raise InputError(
                f"the training split does not fill one batch of {self.recipe.batch_size}: "
                "lower batch_size"
            )
        main = dist.get_rank() == 0
        writer = SummaryWriter(str(self.folder)) if main else None
        for epoch in range(self.epoch, self.recipe.epochs):
            lr = self.optimizer.param_groups[0]["lr"]
            train_loss = self._train_epoch(epoch)
            top1, top5 = self.evaluate(self.model)
            ema_top1 = self.evaluate(self.ema.module)[0] if self.ema else math.nan
            self.scheduler.step(epoch + 1)
            self.epoch = epoch + 1
            values = (epoch, lr, train_loss, top1, top5, ema_top1)
            self.rows.append(dict(zip(COLUMNS, values, strict=True)))
            score = max(top1, ema_top1) if self.ema else top1
            improved = score > self.best
            self.best = max(self.best, score)
            if writer:
                logger.info(
                    "epoch %d: loss %.4f, top-1 %.2f, top-5 %.2f%s",
                    epoch, train_loss, top1, top5, ", the best so far" if improved else "",
                )  # fmt: skip
                for name, value in self.rows[-1].items():
                    if name != "epoch" and math.isfinite(value):
                        writer.add_scalar(name, value, epoch)
                self._write_csv()
                self.save("best.pth" if improved else None)
        if writer:
            writer.close()

    def _train_epoch(self, epoch: int) -> float:
        self._seed(epoch)
        self.model.train()
        self.loss.train()
        sampler: Any = getattr(self.data.train, "sampler", None)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
        total = torch.zeros((), device=self.device)
        loader = iter(self.data.train)
        began = time.monotonic()
        for step in range(self.steps):
            for micro in range(self.plan.accumulation):
                images, targets = next(loader)
                total += self._micro_batch(images, targets, micro == self.plan.accumulation - 1)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
            if self.ema:
                self.ema.update(self.model)
            if (step + 1) % self.recipe.log_interval == 0 or step + 1 == self.steps:
                self._report(epoch, step + 1, total, time.monotonic() - began)
        dist.all_reduce(total)
        return float(total) / (self.steps * self.plan.processes)

    def _micro_batch(self, images: Tensor, targets: Tensor, last: bool) -> Tensor:
        images = images.to(self.device, memory_format=self.memory_format, non_blocking=True)
        targets = targets.to(self.device, non_blocking=True)
        if self.data.mixup is not None:
            images, targets = self.data.mixup(images, targets)
        # Gradients of several processes are averaged once a step.
        self.parallel.require_backward_grad_sync = last
        with torch.autocast(
            self.device.type, dtype=self.amp_dtype, enabled=self.amp_dtype is not None
        ):
            outputs = self.parallel(images)
            if isinstance(self.loss, HardDistillation):
                loss = self.loss(images, outputs, targets)
            else:
                loss = self.loss(outputs, targets)
        loss = loss / self.plan.accumulation
        self.scaler.scale(loss).backward()
        return loss.detach()

    def _report(self, epoch: int, step: int, total: Tensor, seconds: float) -> None:
        mean = float(total) / step
        if not math.isfinite(mean):
            raise InputError(
                f"the loss is not finite in epoch {epoch}, step {step}: resume from "
                f"{self.folder / 'last.pth'} with a lower lr, a longer warm-up, or amp=bfloat16 "
                "instead of float16"
            )
        if dist.get_rank() == 0:
            images = step * self.recipe.batch_size / seconds
            left = (self.recipe.epochs - epoch) * self.steps - step
            eta = timedelta(seconds=round(left * seconds / step))
            logger.info(
                "epoch %d/%d, step %d/%d: loss %.4f, lr %.2e, %.0f images/s, ETA %s",
                epoch, self.recipe.epochs, step, self.steps, mean,
                self.optimizer.param_groups[0]["lr"], images, eta,
            )  # fmt: skip

    def _seed(self, epoch: int) -> None:
        world = dist.get_world_size()
        number = self.recipe.seed + epoch * world + dist.get_rank()
        random.seed(number)
        np.random.seed(number)
        torch.manual_seed(number)

    # --- evaluation ----------------------------------------------------------------

    @torch.inference_mode()
    def evaluate(self, model: nn.Module) -> tuple[float, float]:
        """Top-1 and top-5 accuracy in percent over the whole validation split."""
        model.eval()
        left = own_share(self.data.val_images)
        hits = torch.zeros(2, device=self.device)
        for images, targets in self.data.val:
            images = images.to(self.device, memory_format=self.memory_format)  # noqa: PLW2901
            with torch.autocast(
                self.device.type, dtype=self.amp_dtype, enabled=self.amp_dtype is not None
            ):
                logits = model(images)
            count = min(left, len(targets))
            left -= count
            best = logits[:count].topk(min(5, logits.shape[1])).indices
            right = best == targets[:count, None].to(self.device)
            hits += torch.stack([right[:, 0].sum(), right.sum()])
        dist.all_reduce(hits)
        return tuple((100 * hits / self.data.val_images).tolist())

    # --- files ---------------------------------------------------------------------

    def save(self, best: str | None = None) -> None:
        """Write last.pth, and ``best`` too if given; each whole or not at all."""
        content = {
            "state_dict": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "scaler": self.scaler.state_dict(),
            "epoch": self.epoch,
            "best": self.best,
            "rows": self.rows,
            "model": self.recipe.model,
        }
        if self.ema:
            content["state_dict_ema"] = self.ema.module.state_dict()
        for name in ("last.pth", best) if best else ("last.pth",):
            unfinished = self.folder / f"{name}.unfinished"
            torch.save(content, unfinished)
            os.replace(unfinished, self.folder / name)

    def resume(self) -> None:
        """Continue from last.pth.

        Raises:
            CheckpointError: The file is damaged or of another model.
        """
        path = self.folder / "last.pth"
        content = read(path)
        try:
            self.model.load_state_dict(content["state_dict"])
            self.optimizer.load_state_dict(content["optimizer"])
            if self.ema:
                self.ema.module.load_state_dict(content["state_dict_ema"])
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"{path} is not of this recipe: {error}") from error
        self.scheduler.load_state_dict(content["scheduler"])
        self.scaler.load_state_dict(content["scaler"])
        self.epoch, self.best, self.rows = content["epoch"], content["best"], content["rows"]
        logger.info("Resuming after epoch %d", self.epoch - 1)

    def _write_csv(self) -> None:
        path = self.folder / "summary.csv"
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS)
            table.writeheader()
            table.writerows(self.rows)
        os.replace(unfinished, path)
