"""ONNX and torch.export: the same outputs, every shared weight once."""

import numpy as np
import onnxruntime
import pytest
import timm
import torch
from conftest import ROOT, assert_one_line_error, run_tool

from srvit_backbone.any_model.open import build_detector
from srvit_backbone.deployment.export import Features, export_onnx, export_program


def perturbed(name, **settings):
    """A variant whose class token and norms are not at their first values."""
    model = timm.create_model(name, **settings).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model


def assert_equal_outputs(path, model, shapes):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for shape in shapes:
        image = torch.randn(shape)
        with torch.no_grad():
            expected = model(image)
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = session.run(None, {"image": image.numpy()})
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b.numpy(), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("srvit_nano_t3", "classifier"),
        ("srvit_nano_t3", "backbone"),
        pytest.param("srvit_t_t2", "backbone", marks=pytest.mark.slow),
        pytest.param("srvit_s_t4", "classifier", marks=pytest.mark.slow),
    ],
)
def test_onnx_at_any_size_and_batch_holds_each_weight_once(name, part, tmp_path):
    """One file for native and other sizes, also no multiples of the patch; batch 1 and 3."""
    model = perturbed(name)
    model = model if part == "classifier" else Features(model)
    path = tmp_path / "model.onnx"
    export_onnx(model, path, (2, 3, 240, 208), dynamic=True)
    shapes = [(1, 3, 224, 224), (3, 3, 224, 224), (1, 3, 100, 333), (3, 3, 100, 333)]
    assert_equal_outputs(path, model, shapes)
    if "nano" not in name:  # whose graph is not small beside its weights
        parameters = sum(p.numel() * p.element_size() for p in model.parameters())
        assert path.stat().st_size <= 1.05 * parameters


def test_a_fixed_size_file_holds_each_weight_once(tmp_path):
    model = timm.create_model("srvit_t_t3")
    path = tmp_path / "model.onnx"
    export_onnx(model, path, (1, 3, 224, 224))
    parameters = sum(p.numel() * p.element_size() for p in model.parameters())
    assert path.stat().st_size <= 1.05 * parameters


def test_onnx_of_the_pyramid(tmp_path):
    detector = build_detector(ROOT / "detection/configs/mask_rcnn_srvit_demo.py").eval()
    pyramid = Features(detector.backbone)
    export_onnx(pyramid, tmp_path / "pyramid.onnx", (1, 3, 192, 256))
    assert_equal_outputs(tmp_path / "pyramid.onnx", pyramid, [(1, 3, 192, 256)])


def test_torch_export_round_trip(tmp_path):
    model = perturbed("srvit_nano_t2")
    program = export_program(model, (2, 3, 224, 224), dynamic=True)
    torch.export.save(program, tmp_path / "model.pt2")
    again = torch.export.load(tmp_path / "model.pt2").module()
    for shape in ((3, 3, 224, 224), (1, 3, 100, 333)):
        image = torch.randn(shape)
        torch.testing.assert_close(again(image), model(image))


def test_the_tool_checks_what_it_wrote(tmp_path):
    target = tmp_path / "new" / "model.onnx"
    process = run_tool("export.py", "srvit_nano_t3", "--dynamic", "--output", target)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("largest difference") == 2
    assert [path.name for path in target.parent.iterdir()] == ["model.onnx"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["srvit_nano_t3", "--format", "torchscript"], ["TorchScript", "onnx"]),
        (["srvit_x"], ["srvit_x", "srvit_s_t3"]),
        (["srvit_nano_t3", "--part", "pyramid"], ["config"]),
        (["srvit_nano_t3", "--weights", "none.pth"], ["none.pth"]),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(options, words, tmp_path):
    process = run_tool("export.py", *options, "--output", tmp_path / "m.onnx")
    assert_one_line_error(process, *words)
    assert not list(tmp_path.iterdir())


def test_a_whole_detector_is_traced_by_detectron2s_adapter():
    """What detection/README.md promises of deployment: also at a size that was not traced."""
    from detectron2.export import TracingAdapter

    detector = build_detector(ROOT / "detection/configs/mask_rcnn_srvit_demo.py").eval()
    detector.roi_heads.box_predictor.test_score_thresh = 0.0
    image = torch.rand(3, 192, 256) * 255

    def inference(model, inputs):
        return [{"instances": model.inference(inputs, do_postprocess=False)[0]}]

    adapter = TracingAdapter(detector, [{"image": image}], inference)
    with torch.no_grad():
        traced = torch.jit.trace(adapter, (image,), check_trace=False)
        for size in ((192, 256), (160, 200)):
            other = torch.rand(3, *size) * 255
            expected, found = adapter(other), traced(other)
            assert len(expected[0]) > 10
            for a, b in zip(found, expected, strict=True):
                torch.testing.assert_close(a, b)
