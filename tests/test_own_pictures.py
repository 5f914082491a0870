"""The one picture reader: every kind of file has the right pixels, everywhere, or is refused."""

import warnings

import numpy as np
import pytest
from conftest import ROOT
from detectron2.config import LazyConfig, instantiate
from mmseg.registry import TRANSFORMS
from own_files import BOX, ORIENTATIONS, bright_box, save_turned, scene
from PIL import Image

import srvit_backbone.openmmlab.segmentation  # noqa: F401  registers
from srvit_backbone.errors import InputError
from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.headers import Header, note_headers, read_header, read_headers
from srvit_backbone.own_data.pictures import find_pictures, is_picture, read_image
from srvit_backbone.pretrain.images import ClassFolders

RAMP = np.tile(np.arange(256, dtype=np.uint8), (4, 1))


def readings(path):
    """A picture by the readers of all three frameworks, and of the demo: RGB."""
    config = LazyConfig.load(str(ROOT / "detection/configs/mask_rcnn_srvit_demo.py"))
    mapper = instantiate(config.dataloader.test.mapper)
    width, height = read_header(path).size
    entry = {"file_name": str(path), "width": width, "height": height}
    loading = TRANSFORMS.build({"type": "LoadPicture"})
    return {
        "demo": read_image(path),
        "detectron2": mapper(entry)["image"].numpy().transpose(1, 2, 0),
        "mmseg": loading({"img_path": str(path)})["img"][:, :, ::-1],
        "pretraining": np.asarray(ClassFolders([(path, 0)], "")[0][0]),
    }


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("size", [(64, 48), (48, 48)])
def test_all_orientations_are_upright_in_every_reader(tmp_path, orientation, size):
    picture = scene(size=size)
    path = tmp_path / "turned.png"
    save_turned(picture, path, orientation)
    for name, image in readings(path).items():
        assert np.array_equal(image, np.asarray(picture)), name
    assert read_header(path).size == size


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("factor", [256, 257])
def test_a_16_bit_ramp_is_its_8_bit_version(tmp_path, suffix, factor):
    path = tmp_path / f"ramp{suffix}"
    Image.fromarray(RAMP.astype(np.uint16) * factor).save(path)
    assert read_header(path).mode.startswith("I")
    for name, image in readings(path).items():
        difference = np.abs(image.astype(int) - RAMP[..., None])
        assert difference.max() <= 1, name
        assert image[0, 0].tolist() == [0, 0, 0]


def test_black_and_white_of_16_bits_stay_black_and_white(tmp_path):
    Image.fromarray(np.array([[0, 128, 129, 65535]], np.uint16)).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png")[0, :, 0].tolist() == [0, 0, 1, 255]


def palette():
    picture = Image.fromarray(np.array([[0, 1]], np.uint8), "P")
    picture.putpalette([10, 20, 30, 200, 100, 50])
    return picture


KINDS = {
    "grey": (Image.new("L", (2, 1), 77), [77, 77, 77]),
    "black and white": (Image.new("1", (2, 1), 1), [255, 255, 255]),
    "alpha": (Image.new("RGBA", (2, 1), (9, 8, 7, 0)), [9, 8, 7]),
    "grey alpha": (Image.new("LA", (2, 1), (50, 0)), [50, 50, 50]),
    "palette": (palette(), [10, 20, 30]),
    "CMYK": (Image.new("CMYK", (2, 1), (0, 255, 255, 0)), [255, 0, 0]),
    "32-bit within 16": (Image.fromarray(np.array([[25700, 0]], np.int32)), [100, 100, 100]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_mode_has_its_colours(tmp_path, kind):
    picture, first = KINDS[kind]
    path = tmp_path / ("a.tif" if picture.mode in ("CMYK", "I") else "a.png")
    if kind == "palette":
        picture.info["transparency"] = b"\x00\xff"
    picture.save(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        image = read_image(path)
    assert image.shape == (1, 2, 3)
    assert image[0, 0].tolist() == first
    assert image.flags.writeable


def test_an_iphones_picture_is_read(tmp_path):
    """HEIF, by pillow-heif."""
    pillow_heif = pytest.importorskip("pillow_heif")
    pillow_heif.from_pillow(Image.new("RGB", (64, 64), (200, 100, 50))).save(tmp_path / "a.HEIC")
    assert is_picture(tmp_path / "a.HEIC")
    image = read_image(tmp_path / "a.HEIC")
    assert np.abs(image.astype(int) - (200, 100, 50)).max() <= 4
    assert read_header(tmp_path / "a.HEIC").size == (64, 64)


@pytest.mark.parametrize(
    ("name", "save", "words"),
    [
        ("float.tif", lambda p: Image.fromarray(np.ones((2, 2), np.float32)).save(p), "8 bits"),
        ("deep.tif", lambda p: Image.fromarray(np.full((2, 2), 70000, np.int32)).save(p), "16 bit"),
        ("none.png", lambda p: None, "no such file"),
        ("text.jpg", lambda p: p.write_text("no picture"), "cannot identify"),
        ("cut.jpg", lambda p: (scene().save(p), p.write_bytes(p.read_bytes()[:900])), "truncated"),
        ("cut.png", lambda p: (scene().save(p), p.write_bytes(p.read_bytes()[:900])), "truncated"),
    ],
)
def test_what_cannot_be_read_is_said_by_the_check_and_by_the_reader(tmp_path, name, save, words):
    path = tmp_path / name
    save(path)
    assert words in read_header(path).error
    with pytest.raises(InputError, match=f"{name}.*{words}"):
        read_image(path)


def test_a_picture_too_large_is_said(tmp_path, monkeypatch):
    scene().save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert "cut it into tiles" in read_header(tmp_path / "a.png").error
    with pytest.raises(InputError, match="cut it into tiles"):
        read_image(tmp_path / "a.png")


def test_a_jpeg_with_a_cameras_appendix_is_whole(tmp_path):
    """Some phones write films behind the picture's end."""
    path = tmp_path / "a.jpg"
    scene().save(path)
    path.write_bytes(path.read_bytes() + b"\0" * 10000)
    assert read_header(path).error == ""


def test_pages_are_counted_and_the_first_is_read(tmp_path):
    pages = [Image.new("RGB", (3, 2), colour) for colour in ("red", "blue")]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    assert read_header(tmp_path / "a.tif").frames == 2
    assert read_image(tmp_path / "a.tif")[0, 0].tolist() == [255, 0, 0]


def test_every_suffix_in_any_case_is_found_and_systems_files_are_not(tmp_path):
    names = ["a.jpg", "b.JPG", "c.jpeg", "d.BMP", "e.TiF", "f.webp", "g.gif", "h.PNG", "i.heic"]
    for name in (*names, "._a.jpg", "Thumbs.db", ".DS_Store", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in find_pictures([str(tmp_path)])] == names


def test_one_cause_is_one_line():
    findings = Findings()
    for number in range(599):
        findings.problem("masks with the id 11", f"{number}.png", "name it")
    findings.note("grey pictures", "a.png")
    assert [str(finding) for finding in findings] == [
        "PROBLEM: masks with the id 11 (599: 0.png, 1.png, 2.png and 596 more): name it",
        "note: grey pictures (a.png)",
    ]
    with pytest.raises(InputError, match="^masks with the id 11"):
        findings.stop_on_problems()


def test_headers_of_many_pictures_are_those_of_each(tmp_path, monkeypatch):
    """By several processes, in order."""
    monkeypatch.setattr("srvit_backbone.own_data.headers.MANY", 4)
    monkeypatch.setattr("srvit_backbone.own_data.headers.CHUNK", 2)
    paths = []
    for number in range(7):
        paths.append(tmp_path / f"{number}.png")
        scene(number, (20 + number, 30), (1, 1, 5, 5)).save(paths[-1])
    assert {p.name: h.size for p, h in read_headers(paths).items()} == {
        f"{number}.png": (20 + number, 30) for number in range(7)
    }


def test_notes_name_what_is_done():
    findings = Findings()
    note_headers({"a.png": Header((1, 1), (1, 1), mode="L"), "b": Header(error="bad")}, findings)
    assert [finding.harmless for finding in findings] == [True, False]
    assert "repeated three times" in str(next(iter(findings)))


def test_the_bright_box_is_where_it_was_drawn():
    assert bright_box(np.asarray(scene())) == list(BOX)
