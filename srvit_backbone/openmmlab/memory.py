"""Memory of an mmseg segmentor's step before it is run."""

from typing import Any

import torch
import torch.nn.functional as F
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample
from torch import Tensor

from srvit_backbone.analysis.memory import StepMemory, step_memory


def segmentor_memory(
    model: Any,
    height: int,
    width: int,
    batch: int,
    accumulate: bool = False,
    amp_dtype: torch.dtype | None = None,
) -> StepMemory:
    """Memory of a training step with cross-entropy, and of inference on one image.

    Args:
        model: An EncoderDecoder on the meta device.
        height: Of the image, in pixels.
        width: Likewise.
        batch: Images of one forward pass.
        accumulate: See step_memory.
        amp_dtype: See step_memory.
    """
    heads = [model.decode_head, *([model.auxiliary_head] if model.with_auxiliary_head else [])]

    def losses() -> list[Tensor]:
        features = model.extract_feat(torch.zeros(batch, 3, height, width))
        labels = torch.zeros(batch, height, width, dtype=torch.long)
        logits = [head(features) for head in heads]
        return [
            F.cross_entropy(
                F.interpolate(part, (height, width), mode="bilinear"), labels, reduction="none"
            ).mean()
            for part in logits
        ]

    def infer() -> Tensor:
        features = model.extract_feat(torch.zeros(1, 3, height, width))
        logits = F.interpolate(model.decode_head(features), (height, width), mode="bilinear")
        return logits.argmax(1)

    return step_memory(model, losses, infer, accumulate, amp_dtype)


def random_batch(model: Any, size: int, batch: int) -> dict:
    """Random pictures of ``size`` pixels with labels, in mmseg's form."""
    samples = []
    for _ in range(batch):
        labels = torch.randint(0, model.decode_head.num_classes, (1, size, size))
        sample = SegDataSample(gt_sem_seg=PixelData(data=labels))
        sample.set_metainfo({"img_shape": (size, size), "ori_shape": (size, size)})
        samples.append(sample)
    images = torch.randint(0, 256, (batch, 3, size, size), dtype=torch.uint8)
    return {"inputs": list(images), "data_samples": samples}
