"""Files as annotation tools, phones and notebooks leave them, made small."""

import json

import numpy as np
from PIL import Image

ORIENTATIONS = range(1, 9)
# What brings a picture stored with an orientation upright, and what stores an upright one so.
TO_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
TO_STORED = {**TO_UPRIGHT, 6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}
BOX = (5, 8, 20, 12)  # x, y, width, height


def scene(seed=0, size=(64, 48), box=BOX):
    """A noisy dark picture with a bright box."""
    pixels = np.random.default_rng(seed).integers(0, 60, (size[1], size[0], 3), np.uint8)
    x, y, width, height = box
    pixels[y : y + height, x : x + width] = (220, 200, 180)
    return Image.fromarray(pixels)


def save_turned(picture, path, orientation):
    """Store an upright picture so that EXIF has to turn it back."""
    stored = picture.transpose(TO_STORED[orientation]) if orientation > 1 else picture
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored.save(path, exif=exif)
    return stored


def bright_box(image):
    """[x, y, width, height] of what is bright in an (H, W, 3) picture."""
    bright = image.min(axis=2) > 150
    rows, columns = np.nonzero(bright.any(1))[0], np.nonzero(bright.any(0))[0]
    x, y = int(columns[0]), int(rows[0])
    return [x, y, int(columns[-1]) + 1 - x, int(rows[-1]) + 1 - y]


def polygon(box=BOX):
    x, y, width, height = box
    return [[x, y, x + width, y, x + width, y + height, x, y + height]]


def note(number=1, image=1, **changes):
    """An object as COCO has it; a change to None with ``drop`` in its value removes the key."""
    found = {
        "id": number, "image_id": image, "category_id": 1, "bbox": list(BOX), "iscrowd": 0,
        "area": BOX[2] * BOX[3], "segmentation": polygon(),
    }  # fmt: skip
    found.update(changes)
    return {key: value for key, value in found.items() if value != "drop"}


def coco(images=2, notes=None, names=("thing",), **changes):
    """A COCO json's content: every picture 64 x 48, with one box."""
    content = {
        "images": [
            {"id": i, "file_name": f"{i}.png", "width": 64, "height": 48}
            for i in range(1, images + 1)
        ],
        "annotations": notes or [note(i, i) for i in range(1, images + 1)],
        "categories": [{"id": i, "name": name} for i, name in enumerate(names, 1)],
    }
    content.update(changes)
    return content


def write_coco(folder, train=None, val=None, dump=json.dumps):
    """train.json, val.json and pictures 1.png, 2.png beside them; returns own_data's paths."""
    for seed, (split, content) in enumerate((("train", train or coco()), ("val", val or coco()))):
        (folder / split).mkdir(parents=True, exist_ok=True)
        (folder / f"{split}.json").write_text(dump(content), encoding="utf-8")
        for image in content["images"]:
            path = folder / split / str(image.get("file_name")).replace("\\", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() and path.suffix == ".png":
                scene(10 * seed + hash(path.name) % 1000).save(path)
    return {
        "train_json": folder / "train.json",
        "train_images": folder / "train",
        "val_json": folder / "val.json",
        "val_images": folder / "val",
    }


def write_masks(folder, train, val=None, picture=None, suffix=".png"):
    """images/ and annotations/ with a picture for each mask (array or picture)."""
    for split, masks in (("training", train), ("validation", val or train)):
        for part in ("images", "annotations"):
            (folder / part / split).mkdir(parents=True, exist_ok=True)
        for number, mask in enumerate(masks):
            image = mask if isinstance(mask, Image.Image) else Image.fromarray(mask)
            image.save(folder / "annotations" / split / f"{number}{suffix}")
            shown = picture or scene(len(split) * 100 + number, image.size)
            shown.save(folder / "images" / split / f"{number}.png")
    return folder
