"""Mask R-CNN's config turned into that of another detector; backbone and recipe stay."""

from copy import deepcopy

from detectron2.config import LazyCall as L
from detectron2.layers import ShapeSpec
from detectron2.modeling.anchor_generator import DefaultAnchorGenerator
from detectron2.modeling.backbone.fpn import LastLevelP6P7
from detectron2.modeling.box_regression import Box2BoxTransform
from detectron2.modeling.matcher import Matcher
from detectron2.modeling.meta_arch import FCOS, RetinaNet
from detectron2.modeling.meta_arch.fcos import FCOSHead
from detectron2.modeling.meta_arch.retinanet import RetinaNetHead
from detectron2.modeling.roi_heads import CascadeROIHeads, FastRCNNOutputLayers
from omegaconf import DictConfig

_LEVELS = ["p3", "p4", "p5", "p6", "p7"]


def to_cascade(model: DictConfig) -> DictConfig:
    """Cascade Mask R-CNN: three box heads at rising IoU thresholds."""
    heads = model.roi_heads
    box_head, predictor = heads.pop("box_head"), heads.pop("box_predictor")
    heads.pop("proposal_matcher")
    heads._target_ = CascadeROIHeads
    heads.box_heads = [deepcopy(box_head) for _ in range(3)]
    heads.box_predictors = [
        L(FastRCNNOutputLayers)(
            input_shape=predictor.input_shape,
            test_score_thresh=0.05,
            box2box_transform=L(Box2BoxTransform)(weights=(centre, centre, size, size)),
            cls_agnostic_bbox_reg=True,
            num_classes="${...num_classes}",
        )
        for centre, size in ((10, 5), (20, 10), (30, 15))
    ]
    heads.proposal_matchers = [
        L(Matcher)(thresholds=[iou], labels=[0, 1], allow_low_quality_matches=False)
        for iou in (0.5, 0.6, 0.7)
    ]
    return model


def to_retinanet(model: DictConfig) -> DictConfig:
    """RetinaNet on p3 to p7."""
    return L(RetinaNet)(
        head=_dense_head(RetinaNetHead, model, num_anchors=9),
        anchor_generator=L(DefaultAnchorGenerator)(
            sizes=[[side * 2 ** (i / 3) for i in range(3)] for side in (32, 64, 128, 256, 512)],
            aspect_ratios=[0.5, 1.0, 2.0],
            strides=[8, 16, 32, 64, 128],
            offset=0.0,
        ),
        box2box_transform=L(Box2BoxTransform)(weights=[1.0, 1.0, 1.0, 1.0]),
        anchor_matcher=L(Matcher)(
            thresholds=[0.4, 0.5], labels=[0, -1, 1], allow_low_quality_matches=True
        ),
        input_format=model.input_format,
        **_dense_settings(model),
    )


def to_fcos(model: DictConfig) -> DictConfig:
    """FCOS on p3 to p7."""
    return L(FCOS)(
        head=_dense_head(FCOSHead, model, norm="GN"),
        test_score_thresh=0.2,
        test_nms_thresh=0.6,
        **_dense_settings(model),
    )


def without_masks(dataloader: DictConfig, image_format: str) -> DictConfig:
    """The data of a detector without masks: boxes as annotated, cut where the image is cut."""
    mapper = dataloader.train.mapper
    mapper.use_instance_mask = mapper.recompute_boxes = False
    # Not of the model: FCOS does not have it.
    mapper.image_format = dataloader.test.mapper.image_format = image_format
    return dataloader


def _dense_head(head: type, model: DictConfig, **settings: object) -> DictConfig:
    channels = model.backbone.out_channels
    return L(head)(
        input_shape=[ShapeSpec(channels=channels) for _ in _LEVELS],
        num_classes="${..num_classes}",
        conv_dims=[channels] * 4,
        prior_prob=0.01,
        **settings,
    )


def _dense_settings(model: DictConfig) -> dict:
    backbone = deepcopy(model.backbone)
    backbone.scale_factors = (2.0, 1.0, 0.5)
    backbone.top_block = L(LastLevelP6P7)(
        in_channels=backbone.out_channels, out_channels=backbone.out_channels, in_feature="p5"
    )
    return {
        "backbone": backbone,
        "num_classes": model.roi_heads.num_classes,
        "head_in_features": _LEVELS,
        "focal_loss_alpha": 0.25,
        "focal_loss_gamma": 2.0,
        "pixel_mean": model.pixel_mean,
        "pixel_std": model.pixel_std,
    }
