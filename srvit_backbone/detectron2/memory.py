"""Memory of a Detectron2 detector's step before it is run."""

from itertools import chain
from typing import Any

import torch
from detectron2.modeling.meta_arch import GeneralizedRCNN
from detectron2.structures import BitMasks, Boxes, Instances
from torch import Tensor, nn

from srvit_backbone.analysis.memory import StepMemory, step_memory


def detector_memory(
    model: Any,
    height: int,
    width: int,
    batch: int,
    accumulate: bool = False,
    amp_dtype: torch.dtype | None = None,
) -> StepMemory:
    """Memory of a training step, and of inference on one image.

    Anchors, matching and the choice of proposals depend on the picture and are left out; every head
    gets as many proposals as its settings allow.

    Args:
        model: A detector on the meta device: GeneralizedRCNN, RetinaNet or FCOS.
        height: Of the padded image, in pixels.
        width: Likewise.
        batch: Images of one forward pass.
        accumulate: See step_memory.
        amp_dtype: See step_memory.
    """

    def losses() -> list[Tensor]:
        heads = getattr(model, "roi_heads", None)
        proposals = heads.batch_size_per_image if heads else 0
        masks = int(proposals * heads.positive_fraction) if heads else 0
        return head_outputs(model, (batch, height, width), proposals, masks)

    def infer() -> list[Tensor]:
        rcnn = isinstance(model, GeneralizedRCNN)
        proposals = model.proposal_generator.post_nms_topk[False] if rcnn else 0
        return head_outputs(model, (1, height, width), proposals, 100)

    return step_memory(model, losses, infer, accumulate, amp_dtype)


def head_outputs(
    model: Any, size: tuple[int, int, int], proposals: int, masks: int
) -> list[Tensor]:
    """Outputs of all heads of a detector, before anything that depends on the picture.

    Args:
        model: GeneralizedRCNN, RetinaNet or FCOS.
        size: Images, height and width of a batch.
        proposals: Of an image, for the box heads.
        masks: Likewise for the mask head.
    """
    images, height, width = size
    device = next(model.parameters()).device
    features = model.backbone(torch.zeros(images, 3, height, width, device=device))
    if not isinstance(model, GeneralizedRCNN):
        return _flatten(model.head([features[name] for name in model.head_in_features]))
    rpn, heads = model.proposal_generator, model.roi_heads
    outputs = _flatten(rpn.rpn_head([features[name] for name in rpn.in_features]))
    channels = features[heads.box_in_features[0]].shape[1]
    stages = isinstance(heads.box_head, nn.ModuleList)
    box_heads = heads.box_head if stages else [heads.box_head]
    predictors = heads.box_predictor if stages else [heads.box_predictor]
    for head, predictor in zip(box_heads, predictors, strict=True):
        pooled = _pool(heads.box_pooler, features.values(), images * proposals, channels)
        outputs += _flatten(predictor(head(pooled)))
    if heads.mask_on:
        pooled = _pool(heads.mask_pooler, features.values(), images * masks, channels)
        outputs += _flatten(heads.mask_head.layers(pooled))
    return outputs


def random_batch(size: int, batch: int, objects: int) -> list[dict]:
    """Random pictures of ``size`` pixels with boxes and masks, in Detectron2's form."""
    corners = torch.rand(batch, objects, 2) * size * 0.7
    sides = (0.05 + 0.25 * torch.rand(batch, objects, 2)) * size
    inputs = []
    for boxes in torch.cat([corners, corners + sides], dim=2):
        masks = torch.zeros(objects, size, size, dtype=torch.bool)
        for mask, (x0, y0, x1, y1) in zip(masks, boxes.int().tolist(), strict=True):
            mask[y0:y1, x0:x1] = True
        instances = Instances(
            (size, size),
            gt_boxes=Boxes(boxes),
            gt_classes=torch.zeros(objects, dtype=torch.long),
            gt_masks=BitMasks(masks),
        )
        image = torch.randint(0, 256, (3, size, size), dtype=torch.uint8)
        inputs.append({"image": image, "instances": instances})
    return inputs


def _pool(pooler: Any, features: Any, count: int, channels: int) -> Tensor:
    """A tensor of the pooler's shape that depends on the features, so that they get gradients."""
    link = sum(feature.mean() for feature in features)
    return torch.zeros(count, channels, *pooler.output_size, device=link.device) + link


def _flatten(outputs: Any) -> list[Tensor]:
    if isinstance(outputs, Tensor):
        return [outputs]
    return list(chain.from_iterable(_flatten(output) for output in outputs))
