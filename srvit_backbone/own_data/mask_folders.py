"""Where pictures and masks lie, and which belong together."""

import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from srvit_backbone.errors import InputError
from srvit_backbone.own_data.files import IGNORED_FOLDERS, read_text
from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.pictures import is_picture
from srvit_backbone.own_data.splits import WORDS

# In lower case.
PICTURES = [
    "images",
    "image",
    "imgs",
    "img",
    "img_dir",
    "jpegimages",
    "leftimg8bit",
    "pictures",
    "photos",
    "input",
    "inputs",
    "x",
]
MASKS = [
    "annotations",
    "annotation",
    "masks",
    "mask",
    "labels",
    "label",
    "ann_dir",
    "ann",
    "segmentationclass",
    "gtfine",
    "gt",
    "targets",
    "target",
    "segmentation",
    "seg",
    "groundtruth",
    "ground_truth",
    "y",
]
# Behind a split's name, as CamVid's trainannot.
BEHIND = ("annot", "_annot", "_labels", "labels", "_masks", "masks", "_mask", "_gt")
LAYOUTS = (
    "images/training and annotations/training (also train, val, validation; masks, labels), "
    "train/images and train/masks, train and trainannot, or images and masks alone"
)


@dataclass(frozen=True)
class Pair:
    """A picture, its mask, and the EXIF orientation to turn the mask by, 1 for none."""

    picture: Path
    mask: Path
    turn: int = 1


def find_folders(root: Path, only: str = "") -> dict[str, tuple[Path, Path]]:
    """Folders of pictures and masks by split ("train", "val", "test", or "" for all).

    Args:
        root: The data set.
        only: The split that has to be there; by default "train".

    Raises:
        InputError: None of LAYOUTS is there.
    """
    if not root.is_dir():
        raise InputError(f"no folder {root}: set SEG_DATA (data_root) to where the data set is")
    folders = {p.name.lower(): p for p in sorted(root.iterdir()) if p.is_dir()}
    found: dict[str, tuple[Path, Path]] = {}
    pictures = next((folders[n] for n in PICTURES if n in folders), None)
    masks = next((folders[n] for n in MASKS if n in folders), None)
    for split, words in WORDS.items():
        if pictures and masks:
            pair = _of_word(pictures, words), _of_word(masks, words)
            if pair[0] and pair[1]:
                found[split] = pair[0], pair[1]
                continue
        for own in (folders[w] for w in words if w in folders):
            inner = {p.name.lower(): p for p in sorted(own.iterdir()) if p.is_dir()}
            first = next((inner[n] for n in PICTURES if n in inner), None)
            second = next((inner[n] for n in MASKS if n in inner), None)
            beside = next((root / f"{own.name}{b}" for b in BEHIND
                           if (root / f"{own.name}{b}").is_dir()), None)  # fmt: skip
            if first and second:
                found[split] = first, second
            elif beside:
                found[split] = own, beside
    if not found and pictures and masks:
        found[""] = pictures, masks
    if (only or "train") not in found and "" not in found:
        raise InputError(f"{root} holds no pictures with masks as known: {LAYOUTS}")
    return found


def _of_word(folder: Path, words: tuple[str, ...]) -> Path | None:
    inner = {p.name.lower(): p for p in sorted(folder.iterdir()) if p.is_dir()}
    return next((inner[w] for w in words if w in inner), None)


def listed_splits(root: Path) -> dict[str, set[str]]:
    """Names by split where VOC's ImageSets/Segmentation lists them."""
    lists = root / "ImageSets" / "Segmentation"
    return {
        split: set(read_text(lists / f"{split}.txt").split())
        for split in ("train", "val", "test")
        if (lists / f"{split}.txt").is_file()
    }


def pair_folders(pictures: Path, masks: Path, findings: Findings) -> list[Pair]:
    """Pictures with the masks of their names, subfolders included.

    A mask has its picture's name, or that with something constant around it, such as ``_mask``.
    """
    for folder in (pictures, masks):
        if not folder.is_dir():
            findings.problem(
                f"no folder {folder}", "", "set SEG_DATA (data_root) to where the data set is"
            )
            return []
    own, labels = _by_stem(pictures, findings), _by_stem(masks, findings)
    if not own:
        findings.problem("no picture", pictures, "it must hold pictures")
        return []
    match = own.keys() & labels.keys()
    if len(match) < len(own):
        renamed = _match_affixes(sorted(own), sorted(labels))
        if len(renamed) > len(match):
            labels = {renamed[stem]: path for stem, path in labels.items() if stem in renamed}
    for stem in sorted(own.keys() - labels.keys()):
        findings.problem(
            "pictures without a mask", own[stem], f"a mask of the same name belongs into {masks}"
        )
    for stem in sorted(labels.keys() - own.keys()):
        findings.note("masks without a picture", labels[stem], "not used")
    return [Pair(own[stem], labels[stem]) for stem in sorted(own.keys() & labels.keys())]


def _by_stem(folder: Path, findings: Findings) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(f for f in folders if f not in IGNORED_FOLDERS)
        for name in sorted(names):
            path = Path(place, name)
            if not is_picture(path):
                if not name.startswith(".") and name not in ("Thumbs.db", "desktop.ini"):
                    findings.note(
                        f"files that are no pictures ({path.suffix or 'no suffix'})",
                        path,
                        "not used",
                    )
                continue
            stem = str(path.relative_to(folder).with_suffix("")).replace("\\", "/").lower()
            if stem in found:
                findings.problem(
                    "files of one name and several kinds", f"{found[stem]}, {path}",
                    "which one is meant cannot be told: remove or rename one",
                )  # fmt: skip
            found[stem] = path
    return found


def _match_affixes(own: list[str], labels: list[str]) -> dict[str, str]:
    """Stem of a mask -> stem of its picture, by what all names of a folder have in common."""
    bare = {_bare(stem, own): stem for stem in own}
    found = {stem: bare[b] for stem in labels if (b := _bare(stem, labels)) in bare}
    if len(bare) == len(own) and len(found) == len(own):
        return found
    ends = Counter(
        label[len(stem) :] for stem in own for label in labels
        if label.startswith(stem) and re.match(r"[_\-. ]|$", label[len(stem) :])
    )  # fmt: skip
    for end, _ in ends.most_common(1):
        return {stem + end: stem for stem in own if stem + end in set(labels)}
    return {}


def _bare(stem: str, stems: list[str]) -> str:
    if len(stems) < 2:
        return stem
    start = re.match(r"[a-z_\-. ]*", os.path.commonprefix(stems))
    end = re.search(
        r"(?:[_\-. ][a-z0-9_\-. ]*)?$", os.path.commonprefix([s[::-1] for s in stems])[::-1]
    )
    first, last = len(start[0]) if start else 0, len(end[0]) if end else 0
    return stem[first : len(stem) - last]
