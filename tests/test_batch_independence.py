"""A picture's output does not depend on the pictures it shares a batch with, in both frameworks."""

import pytest
import torch
from conftest import ROOT
from detectron2.config import LazyConfig, instantiate
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from mmseg.structures import SegDataSample

SMALL, LARGE = (150, 100), (192, 160)


def test_detectron2_with_square_padding():
    """Alone a small picture would be padded less: the square is what makes both the same."""
    config = LazyConfig.load(str(ROOT / "detection/configs/mask_rcnn_srvit_demo.py"))
    config.model.backbone.square_pad = 192
    config.model.roi_heads.box_predictor.test_score_thresh = 0.0
    model = instantiate(config.model).eval()
    small, *others = ({"image": 255 * torch.rand(3, *size)} for size in (SMALL, LARGE, LARGE))
    with torch.no_grad():
        alone = model.backbone(model.preprocess_image([small]).tensor)
        for other in others:
            together = model.backbone(model.preprocess_image([small, other]).tensor)
            for name, feature in alone.items():
                torch.testing.assert_close(together[name][:1], feature, atol=1e-5, rtol=1e-4)
        found = [model([small])[0]["instances"], model([small, others[0]])[0]["instances"]]
    assert len(found[0]) == len(found[1]) > 0
    for field in ("scores", "pred_classes"):
        torch.testing.assert_close(found[0].get(field), found[1].get(field), atol=1e-5, rtol=1e-4)
    boxes = [instances.pred_boxes.tensor for instances in found]
    torch.testing.assert_close(*boxes, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_mmseg(size):
    config = Config.fromfile(ROOT / "segmentation/configs/upernet_srvit_demo.py")
    init_default_scope(config.default_scope)
    model = MODELS.build(config.model).eval()

    def logits(*images):
        samples = [SegDataSample(metainfo={"ori_shape": size, "img_shape": size}) for _ in images]
        data = model.data_preprocessor({"inputs": list(images), "data_samples": samples})
        with torch.no_grad():
            return [s.seg_logits.data for s in model.predict(**data)]

    picture, *others = (torch.randint(0, 255, (3, *size)) for _ in range(3))
    alone = logits(picture)[0]
    assert alone.shape[-2:] == size
    for other in others:
        torch.testing.assert_close(logits(picture, other)[0], alone, atol=1e-4, rtol=1e-4)
