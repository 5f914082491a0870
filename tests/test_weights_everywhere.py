"""A file of 224-pixel pretraining goes into fine-tuning, detection and segmentation."""

import pytest
import timm
import torch

from srvit_backbone import VARIANTS, load_checkpoint
from srvit_backbone.detectron2 import SRViTBackbone as Detectron2Backbone
from srvit_backbone.openmmlab import SRViTBackbone as MMBackbone

# The widest ones take seconds each, and differ in nothing but width.
WIDE = ("srvit_b_t2", "srvit_b_t3", "srvit_deit_b")


@pytest.mark.parametrize(
    "variant",
    [pytest.param(v, marks=pytest.mark.slow if v in WIDE else ()) for v in VARIANTS],
)
@pytest.mark.parametrize("distilled", [False, True])
def test_a_224_file_of_every_variant_loads_in_all_places(variant, distilled, tmp_path):
    with torch.device("meta"):
        source = timm.create_model(variant, num_classes=5, distilled=distilled)
    state = {name: torch.randn(value.shape) for name, value in source.state_dict().items()}
    path = tmp_path / "best.pth"
    torch.save({"state_dict": state, "epoch": 300}, path)
    heads = {name for name in state if name.startswith("head")}
    tokens = {"dist_token"} if distilled else set()
    targets = [
        (timm.create_model(variant, num_classes=5, distilled=distilled, img_size=384), set()),
        (Detectron2Backbone(variant, img_size=1024), heads | tokens),
        (MMBackbone(variant, img_size=512, out_indices=(0, -1)), heads | tokens),
    ]
    for model, unused in targets:
        report = load_checkpoint(model, path)
        assert not report.initialised
        assert set(report.dropped) == unused
        assert set(report.resized) == {"pos_embed"}
        for name, value in model.state_dict().items():
            if name != "pos_embed":
                assert torch.equal(value, state[name]), name
