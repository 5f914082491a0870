"""The Simple Feature Pyramid as an MMEngine neck, against Detectron2's class."""

import pytest
import torch
from detectron2.layers import ShapeSpec
from detectron2.modeling import Backbone, SimpleFeaturePyramid
from detectron2.modeling.backbone.fpn import LastLevelMaxPool

from srvit_backbone.openmmlab import SimpleFeaturePyramid as Neck


class Map(Backbone):
    """A backbone whose map is its input."""

    def forward(self, x):
        return {"map": x}

    def output_shape(self):
        return {"map": ShapeSpec(channels=16, stride=16)}


@pytest.mark.parametrize("scales", [(4, 2, 1, 0.5), (2, 1, 0.5)])
def test_it_equals_detectron2s_with_the_same_weights(scales):
    reference = SimpleFeaturePyramid(
        Map(), "map", 8, [float(s) for s in scales], LastLevelMaxPool(), norm="LN"
    )
    neck = Neck(16, 8, scales, num_outs=len(scales) + 1)
    weights = list(reference.state_dict().values())
    for stage, level in zip(reference.stages, neck.levels, strict=True):
        ours, theirs = list(level.parameters()), list(stage.parameters())
        # Detectron2 registers a convolution's norm inside it, so the order is the same.
        for target, source in zip(ours, theirs, strict=True):
            torch.nn.init.normal_(source)
            target.data.copy_(source)
    assert len(weights) == len(neck.state_dict())
    x = torch.randn(2, 16, 6, 10)
    expected = list(reference(x).values())
    for ours, theirs in zip(neck([x]), expected, strict=True):
        torch.testing.assert_close(ours, theirs)
        assert ours.is_contiguous()  # mmcv's RoIAlign reads the memory as if it were


def test_further_levels_by_convolution_halve_and_learn():
    neck = Neck(16, 8, (2, 1, 0.5), num_outs=5, add_extra_convs=True)
    maps = neck([torch.randn(1, 16, 8, 8)])
    assert [m.shape[-1] for m in maps] == [16, 8, 4, 2, 1]
    sum(m.square().sum() for m in maps).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in neck.parameters())


@pytest.mark.parametrize("settings", [{"scales": (3, 1)}, {"num_outs": 2}])
def test_bad_settings_are_named(settings):
    with pytest.raises(ValueError, match="scale"):
        Neck(16, **settings)
