"""Training with Detectron2 on GPU and CPU.

With ``loader.build_train_loader`` a run is a function of its config: the randomness of iteration i
(drop path, sampling of proposals) is seeded from (seed, i, rank), so a run that was killed and
resumed ends with the weights of one that was not.
"""

import time
from contextlib import nullcontext
from typing import Any

import torch
from detectron2.engine import SimpleTrainer
from detectron2.utils import comm
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from srvit_backbone.training.stream import micro_batch_size, seed_iteration


class Trainer(SimpleTrainer):
    """Detectron2's SimpleTrainer, seeded per iteration, with mixed precision where wanted.

    Detectron2's AMPTrainer needs a GPU and the deprecated ``torch.cuda.amp``; this does not.

    Args:
        model: A detector; returns a dict of losses in training mode.
        data_loader: Endless batches.
        optimizer: Optimizer of the model's parameters.
        seed: Of the run.
        amp_dtype: Type for mixed precision, None for full precision. float16 scales the loss.
        max_batch_per_process: Images of one forward pass; a larger batch is cut into equal parts
            whose gradients are averaged, as those of so many GPUs are. 0 for no limit.
    """

    def __init__(
        self,
        model: nn.Module,
        data_loader: Any,
        optimizer: torch.optim.Optimizer,
        seed: int = 0,
        amp_dtype: torch.dtype | None = None,
        max_batch_per_process: int = 0,
    ) -> None:
        super().__init__(model, data_loader, optimizer)
        self.max_batch_per_process = max_batch_per_process
        self.seed = seed
        self.amp_dtype = amp_dtype
        self.device = next(model.parameters()).device.type
        self.grad_scaler = torch.amp.GradScaler(self.device, enabled=amp_dtype == torch.float16)

    def run_step(self) -> None:
        """One iteration: load, forward and backward of every part of the batch, step."""
        start = time.perf_counter()
        data = next(self._data_loader_iter)
        data_time = time.perf_counter() - start

        seed_iteration(self.seed, self.iter, comm.get_rank(), comm.get_world_size())
        self.optimizer.zero_grad()
        losses: dict[str, torch.Tensor] = {}
        parts = split_batch(data, self.max_batch_per_process)
        for index, part in enumerate(parts):
            for name, value in self._backward(part, len(parts), index + 1 == len(parts)).items():
                losses[name] = losses.get(name, 0) + value
        self.after_backward()
        self._write_metrics(losses, data_time)
        self.grad_scaler.step(self.optimizer)
        self.grad_scaler.update()

    def _backward(self, part: list[dict], count: int, last: bool) -> dict[str, torch.Tensor]:
        # Gradients of several processes are averaged once an iteration.
        distributed = isinstance(self.model, DistributedDataParallel)
        wait = self.model.no_sync() if distributed and not last else nullcontext()
        enabled = self.amp_dtype is not None
        with wait:
            with torch.autocast(self.device, dtype=self.amp_dtype, enabled=enabled):
                losses = self.model(part)
            losses = {name: value / count for name, value in losses.items()}
            self.grad_scaler.scale(sum(losses.values())).backward()
        return {name: value.detach() for name, value in losses.items()}

    def state_dict(self) -> dict[str, Any]:
        """Iteration, hooks, optimizer and loss scale."""
        return {**super().state_dict(), "grad_scaler": self.grad_scaler.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Counterpart of ``state_dict``."""
        super().load_state_dict(state_dict)
        self.grad_scaler.load_state_dict(state_dict["grad_scaler"])


def split_batch(batch: list[dict], most: int) -> list[list[dict]]:
    """The batch in as few equal parts as have at most ``most`` images each; 0 for one part."""
    size = micro_batch_size(len(batch), most or len(batch))
    return [batch[start : start + size] for start in range(0, len(batch), size)]
