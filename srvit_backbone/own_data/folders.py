"""Checks of data sets that are folders: a folder a class, or pictures and masks."""

from pathlib import Path

import numpy as np
from PIL import Image

from srvit_backbone.own_data.findings import Finding, check_overlap, check_picture
from srvit_backbone.own_data.pictures import SUFFIXES

IGNORED = 255


def check_classes(train: Path, val: Path) -> list[Finding]:
    """Findings of two folders that hold a folder a class."""
    findings: list[Finding] = []
    classes, pictures = [], []
    for split in (train, val):
        folders = sorted(p for p in split.iterdir() if p.is_dir()) if split.is_dir() else []
        if not folders:
            findings.append(Finding(str(split), "holds no class folders"))
        files = [(folder, _pictures(folder)) for folder in folders]
        findings += [Finding(str(folder), "holds no pictures") for folder, own in files if not own]
        pictures.append([path for _, own in files for path in own])
        classes.append({folder.name for folder in folders})
        for path in pictures[-1]:
            findings += check_picture(path)[0]
    if all(classes) and classes[0] != classes[1]:
        only = ", ".join(sorted(classes[0] ^ classes[1]))
        findings.append(Finding(str(val), f"has other classes than {train}: {only} in one only"))
    return findings + check_overlap(*pictures)


def check_masks(
    train: tuple[Path, Path], val: tuple[Path, Path], num_classes: int
) -> list[Finding]:
    """Findings of pictures and masks of the same names; ids 0 to num_classes - 1, and 255."""
    findings: list[Finding] = []
    pictures = []
    for images, masks in (train, val):
        own = _pictures(images)
        pictures.append(own)
        if not own:
            findings.append(Finding(str(images), "holds no pictures"))
        for path in own:
            found, size = check_picture(path)
            findings += found
            findings += _check_mask(masks / f"{path.stem}.png", size, num_classes)
    return findings + check_overlap(*pictures)


def _check_mask(path: Path, size: tuple[int, int] | None, num_classes: int) -> list[Finding]:
    if not path.is_file():
        return [Finding(str(path), "is missing: each picture needs a mask of its name")]
    try:
        with Image.open(path) as mask:
            labels = np.asarray(mask)
    except (OSError, ValueError, SyntaxError) as error:
        return [Finding(str(path), f"cannot be opened as a picture ({error})")]
    if labels.ndim != 2:
        return [Finding(str(path), "has several channels: a mask has one, with class ids")]
    findings = []
    if size is not None and labels.shape != size[::-1]:
        findings.append(Finding(str(path), f"is {labels.shape[::-1]}, its picture {size}"))
    ids = np.unique(labels)
    beyond = ids[(ids >= num_classes) & (ids != IGNORED)].tolist()
    if beyond:
        findings.append(
            Finding(str(path), f"has ids {beyond}, but there are {num_classes} classes from 0 on")
        )
    if (ids == IGNORED).all():
        findings.append(Finding(str(path), "labels no pixel"))
    return findings


def _pictures(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES)
