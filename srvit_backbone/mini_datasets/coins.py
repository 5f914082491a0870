"""Scenes of real coins: scikit-image's photograph cut into coins, which are composed anew.

Two classes by real size, a difference that the scenes exaggerate (SCALES); some coins are seen in
the validation scenes only.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from srvit_backbone.mini_datasets.write import progress

SCENE_SIZE = 192
CLASSES = ("small coin", "large coin")
HELD_OUT_PER_CLASS = 3
# Of the visible part of the smaller of two coins, by one coin placed over the other.
MAX_COVERED = 0.1
# Size in scenes / real size, a range a class: small coins at most and large ones at least as large
# as they are. The real sizes hardly part, 1,496 and 1,622 pixels at the border; so they do more.
SCALES = ((0.72, 1.0), (1.0, 1.3))
BACKGROUNDS = ("astronaut", "camera", "coffee", "brick", "grass", "gravel", "cat", "moon")


@dataclass
class Coin:
    """A coin cut out of the photograph: grey patch (H, W), its mask (H, W), and class index."""

    patch: np.ndarray
    mask: np.ndarray
    label: int


def cut_out_coins(photograph: np.ndarray) -> tuple[list[Coin], np.ndarray]:
    """The coins of scikit-image's ``coins``, in reading order, and the picture without them."""
    from scipy import ndimage
    from skimage import filters, measure, restoration, segmentation

    # Region-based: markers where it is surely coin or background, flooded along the edges.
    markers = np.where(photograph < 30, 1, np.where(photograph > 150, 2, 0))
    flooded = segmentation.watershed(filters.sobel(photograph), markers)
    labelled, _ = ndimage.label(ndimage.binary_fill_holes(flooded == 2))
    regions = [r for r in measure.regionprops(labelled) if r.area > 500]
    regions.sort(key=lambda r: (round(r.centroid[0] / 70), r.centroid[1]))
    # The classes part at the widest gap among the middle sizes (1496 and 1622 pixels).
    areas = np.sort([r.area for r in regions])
    third = len(areas) // 3
    widest = third + np.argmax(areas[third + 1 : -third] / areas[third : -third - 1])
    coins = [Coin(photograph[r.slice], r.image, int(r.area > areas[widest])) for r in regions]

    covered = ndimage.binary_dilation(np.isin(labelled, [r.label for r in regions]), iterations=4)
    # Quarter size is enough for a smooth fill and 16 times cheaper.
    small = photograph[::4, ::4] / 255.0
    filled = restoration.inpaint_biharmonic(small, covered[::4, ::4])
    plain = np.asarray(
        Image.fromarray((filled.clip(0, 1) * 255).astype(np.uint8)).resize(
            photograph.shape[::-1], Image.Resampling.BICUBIC
        )
    )
    return coins, np.where(covered, plain, photograph)


def split_coins(coins: list[Coin], rng: np.random.Generator) -> tuple[list[Coin], list[Coin]]:
    """Coins for training, and coins that only validation scenes show."""
    held_out = [
        int(index)
        for label in range(len(CLASSES))
        for index in rng.choice(
            [i for i, coin in enumerate(coins) if coin.label == label],
            HELD_OUT_PER_CLASS,
            replace=False,
        )
    ]
    train = [coin for i, coin in enumerate(coins) if i not in held_out]
    return train, [coins[i] for i in held_out]


def load_backgrounds(own: np.ndarray) -> list[np.ndarray]:
    """Grey photographs and textures, the coins' own table twice as often as all the others."""
    from skimage import color, data
    from skimage.util import img_as_float

    pictures = []
    for name in BACKGROUNDS:
        picture = getattr(data, name)()
        grey = color.rgb2gray(picture) if picture.ndim == 3 else img_as_float(picture)
        pictures.append((grey * 255).astype(np.uint8))
    return pictures + [own] * 2 * len(pictures)


def random_crop(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A square of the picture at a random scale, resized to a scene."""
    side = int(rng.uniform(SCENE_SIZE * 0.8, min(picture.shape)))
    top = rng.integers(0, picture.shape[0] - side + 1)
    left = rng.integers(0, picture.shape[1] - side + 1)
    crop = Image.fromarray(picture[top : top + side, left : left + side])
    return np.asarray(crop.resize((SCENE_SIZE, SCENE_SIZE), Image.Resampling.BICUBIC), np.float32)


def vary(coin: Coin, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The coin turned, scaled, and brighter or darker: patch and soft mask, float32."""
    scale, angle = rng.uniform(*SCALES[coin.label]), rng.uniform(0, 360)
    size = [max(8, round(side * scale)) for side in coin.patch.shape[::-1]]
    layers = []
    for layer in (coin.patch, coin.mask.astype(np.uint8) * 255):
        image = Image.fromarray(layer).resize(size, Image.Resampling.BICUBIC)
        layers.append(
            np.asarray(image.rotate(angle, Image.Resampling.BICUBIC, expand=True), np.float32)
        )
    return (layers[0] * rng.uniform(0.75, 1.2)).clip(0, 255), layers[1] / 255.0


def compose(
    coins: list[Coin], backgrounds: list[np.ndarray], rng: np.random.Generator
) -> tuple[np.ndarray, list[tuple[int, np.ndarray]]]:
    """A scene (H, W) in grey and its visible coins as (class index, mask (H, W))."""
    scene = random_crop(backgrounds[rng.integers(len(backgrounds))], rng)
    placed: list[tuple[int, np.ndarray]] = []
    for _ in range(rng.integers(5, 11)):
        coin = coins[rng.integers(len(coins))]
        patch, soft = vary(coin, rng)
        top = rng.integers(0, SCENE_SIZE - soft.shape[0])
        left = rng.integers(0, SCENE_SIZE - soft.shape[1])
        window = np.s_[top : top + soft.shape[0], left : left + soft.shape[1]]
        mask = np.zeros((SCENE_SIZE, SCENE_SIZE), bool)
        mask[window] = soft > 0.5
        if any((old & mask).sum() > MAX_COVERED * min(old.sum(), mask.sum()) for _, old in placed):
            continue
        scene[window] = scene[window] * (1 - soft) + patch * soft
        placed = [*((label, old & ~mask) for label, old in placed), (coin.label, mask)]
    scene = scene + rng.normal(0, 3, scene.shape)
    return scene.clip(0, 255).astype(np.uint8), placed


def polygons(mask: np.ndarray) -> list[list[float]]:
    """Outlines of a mask in COCO's form, [x0, y0, x1, y1, ...] in pixels."""
    from skimage import measure

    # One pixel of padding closes outlines at the border; +0.5 goes from pixel centres to COCO's
    # coordinates, in which a pixel spans [x, x + 1].
    outlines = measure.find_contours(np.pad(mask, 1).astype(float), 0.5)
    simplified = [measure.approximate_polygon(outline - 0.5, 0.3) for outline in outlines]
    return [
        outline[:-1, ::-1].ravel().round(2).tolist() for outline in simplified if len(outline) > 4
    ]


def write_coins(folder: Path, seed: int, train_scenes: int, val_scenes: int) -> None:
    """Write the coins scenes as COCO json and as ADE20K folders."""
    from skimage import data

    rng = np.random.default_rng(seed)
    photograph = data.coins()
    coins, table = cut_out_coins(photograph)
    backgrounds = load_backgrounds(table)
    for (split, ade_split, count), members in zip(
        (("train", "training", train_scenes), ("val", "validation", val_scenes)),
        split_coins(coins, rng),
        strict=True,
    ):
        for part in (
            folder / split,
            folder / "ade/images" / ade_split,
            folder / "ade/annotations" / ade_split,
        ):
            part.mkdir(parents=True)
        images: list[dict] = []
        annotations: list[dict] = []
        for index in progress(count, f"{split} scenes"):
            scene, placed = compose(members, backgrounds, rng)
            name = f"{index:04d}.png"
            picture = Image.fromarray(scene).convert("RGB")
            picture.save(folder / split / name)
            picture.save(folder / "ade/images" / ade_split / name)
            # ADE20K: 0 is "ignore", classes from 1; here 1 is the background.
            labels = np.ones(scene.shape, np.uint8)
            images.append(
                {"id": index, "file_name": name, "width": SCENE_SIZE, "height": SCENE_SIZE}
            )
            for label, mask in placed:
                labels[mask] = label + 2
                rows, columns = np.nonzero(mask.any(1))[0], np.nonzero(mask.any(0))[0]
                x, y = int(columns[0]), int(rows[0])
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": index,
                        "category_id": label + 1,
                        "bbox": [x, y, int(columns[-1]) + 1 - x, int(rows[-1]) + 1 - y],
                        "area": int(mask.sum()),
                        "iscrowd": 0,
                        "segmentation": polygons(mask),
                    }
                )
            Image.fromarray(labels).save(folder / "ade/annotations" / ade_split / name)
        categories = [{"id": i + 1, "name": name} for i, name in enumerate(CLASSES)]
        content = {"images": images, "annotations": annotations, "categories": categories}
        (folder / f"{split}.json").write_text(json.dumps(content))
    Image.fromarray(photograph).convert("RGB").save(folder / "coins.png")
