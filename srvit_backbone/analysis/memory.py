"""Memory of a step before it is run: torch's fake tensors are traced, and what lives is counted.

Nothing is allocated or computed, so a model too large for the machine is no trouble. What an
operation needs inside itself, and what a memory allocator wastes, is not seen.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Bytes a parameter: AdamW's two averages, and what its step needs for a moment beside parameter,
# gradient and those.
ADAMW_STATE, ADAMW_STEP = 8, 4


class MemoryTracker(TorchDispatchMode):
    """Counts the bytes of all tensors made inside it, and the most that lived at once.

    Attributes:
        live: Bytes that live now.
        peak: The most so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._known: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self.add(leaf)
        return result

    def add(self, tensor: Tensor) -> None:
        """Count a tensor until it dies, unless it shares memory with one that is counted."""
        storage = tensor.untyped_storage()
        if storage in self._known:
            return
        self._known.add(storage)
        size = storage.nbytes()
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._free, size)

    def _free(self, size: int) -> None:
        self.live -= size


@dataclass(frozen=True)
class StepMemory:
    """Bytes of a training step at its peak, and of inference at its."""

    training: int
    inference: int


def step_memory(
    model: nn.Module,
    losses: Callable[[], Any],
    infer: Callable[[], Any],
    accumulate: bool = False,
    amp_dtype: torch.dtype | None = None,
) -> StepMemory:
    """Memory of a model's training step with AdamW, and of inference.

    Args:
        model: On the meta device; it holds fake tensors afterwards, of use for nothing else.
        losses: Of a batch in training mode: tensors, whose sum is propagated back.
        infer: A batch in evaluation mode, without gradients.
        accumulate: Gradients of an earlier part of the batch are there already.
        amp_dtype: Type for mixed precision, None for full precision.
    """
    with FakeTensorMode(allow_non_fake_inputs=True):
        model.to_empty(device="cpu")
        trained = sum(p.nbytes for p in model.parameters() if p.requires_grad) // 4
        model.train()
        tracker = _track(model)
        with tracker, torch.autocast("cpu", dtype=amp_dtype, enabled=amp_dtype is not None):
            parts = [loss.sum() for loss in tree_leaves(losses()) if isinstance(loss, Tensor)]
            total = torch.stack(parts).sum()
        with tracker:
            total.backward()
        gradients = 4 * trained
        activations = tracker.peak + (gradients if accumulate else 0)
        optimizer = _track(model).live + gradients + ADAMW_STEP * trained
        training = ADAMW_STATE * trained + max(activations, optimizer)
        del total, parts
        model.zero_grad()
        model.eval()
        tracker = _track(model)
        with (
            torch.inference_mode(),
            tracker,
            torch.autocast("cpu", dtype=amp_dtype, enabled=amp_dtype is not None),
        ):
            infer()
    return StepMemory(training, tracker.peak)


def _track(model: nn.Module) -> MemoryTracker:
    tracker = MemoryTracker()
    for tensor in (*model.parameters(), *model.buffers()):
        tracker.add(tensor)
    return tracker
