"""No tensor is made on the wrong device: all of it on "cuda", as torch's fake tensors, in AMP.

Nothing is computed, so no GPU is needed; an operation on tensors of two devices raises. Models come
from the meta device, which is why inputs that are not fake are let in. Autograd's engine asks the
driver for its streams: what is recorded for the backward pass is checked everywhere, the pass
itself runs where there is a GPU.
"""

import contextlib

import pytest
import timm
import torch
from conftest import ROOT
from detectron2.config import LazyConfig, instantiate
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope
from torch._subclasses.fake_tensor import FakeTensorMode

import srvit_backbone  # noqa: F401  registers the variants
from srvit_backbone.detectron2.memory import head_outputs

DTYPES = (torch.bfloat16, torch.float16)
DETECTORS = ("mask_rcnn", "cascade_mask_rcnn", "retinanet", "fcos")


def to_fake_gpu(model):
    """A model on the meta device as one on "cuda", inside FakeTensorMode."""
    return model.to_empty(device="cuda").train()


@contextlib.contextmanager
def amp_on_gpu(dtype):
    """torch.autocast("cuda"), which switches itself off where there is no GPU."""
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", dtype)
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled("cuda", False)


@contextlib.contextmanager
def everything_saved_on_gpu():
    """All that is kept for the backward pass is on the GPU."""
    devices = set()

    def note(tensor):
        devices.add(tensor.device.type)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        yield
    assert devices == {"cuda"}


def assert_gradients_on_gpu(model, outputs):
    """Every parameter is in the outputs' graph; where there is a GPU, it gets its gradient."""
    total = sum(output.float().sum() for output in outputs)
    assert total.device.type == "cuda"
    reached, nodes = set(), [total.grad_fn]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            reached.add(id(node.variable))
        following = {n for n, _ in node.next_functions if n is not None} - seen
        seen |= following
        nodes += following
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert [name for name, p in trained.items() if id(p) not in reached] == []
    if torch.cuda.is_available():
        total.backward()
        assert {p.grad.device.type for p in trained.values()} == {"cuda"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "settings",
    [
        {"checkpointing": False},
        {"checkpointing": True},
        {"checkpointing": False, "window_size": 3},
        {"checkpointing": False, "aggregation": "hard", "distilled": True},
    ],
)
def test_backbone(dtype, settings):
    settings = dict(settings)
    checkpointing = settings.pop("checkpointing")
    with torch.device("meta"):
        model = timm.create_model("srvit_nano_t3", img_size=64, **settings)
    with FakeTensorMode(allow_non_fake_inputs=True):
        to_fake_gpu(model)
        model.set_grad_checkpointing(checkpointing)
        # Another size than the native one: the position embedding is resampled.
        images = torch.zeros(2, 3, 100, 90, device="cuda")
        with amp_on_gpu(dtype), everything_saved_on_gpu():
            outputs = model(images)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        assert {output.dtype for output in outputs} == {dtype}
        assert_gradients_on_gpu(model, outputs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DETECTORS)
def test_detector(name, dtype):
    config = LazyConfig.load(str(ROOT / f"detection/configs/{name}_srvit_demo.py"))
    with torch.device("meta"):
        model = instantiate(config.model)
    with FakeTensorMode(allow_non_fake_inputs=True):
        to_fake_gpu(model)
        with amp_on_gpu(dtype), everything_saved_on_gpu():
            outputs = head_outputs(model, (2, 96, 128), proposals=4, masks=2)
        assert_gradients_on_gpu(model, outputs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_segmentor(dtype):
    config = Config.fromfile(ROOT / "segmentation/configs/upernet_srvit_demo.py")
    init_default_scope(config.default_scope)
    with torch.device("meta"):
        model = revert_sync_batchnorm(MODELS.build(config.model))
    with FakeTensorMode(allow_non_fake_inputs=True):
        to_fake_gpu(model)
        with amp_on_gpu(dtype), everything_saved_on_gpu():
            features = model.extract_feat(torch.zeros(2, 3, 96, 80, device="cuda"))
            outputs = model.decode_head(features), model.auxiliary_head(features)
        assert_gradients_on_gpu(model, outputs)


def test_a_tensor_on_the_wrong_device_would_be_seen():
    with FakeTensorMode(allow_non_fake_inputs=True):
        images = torch.zeros(2, 3, device="cuda")
        with pytest.raises(RuntimeError, match="device"):
            images + torch.zeros(3)
