"""A data set for classification: a folder a class, in one folder or in a folder a split."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from srvit_backbone.errors import InputError
from srvit_backbone.own_data.files import IGNORED_FOLDERS
from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.headers import note_headers, read_headers
from srvit_backbone.own_data.overlap import find_overlap
from srvit_backbone.own_data.pictures import is_picture
from srvit_backbone.own_data.splits import WORDS, assign, split_off

Samples = list[tuple[Path, int]]
# Files that no one expects to be trained on.
PLAIN = (".txt", ".csv", ".json", ".md", ".yaml", ".yml", ".xml", ".html")
HIDDEN = ("Thumbs.db", "desktop.ini")


@dataclass
class Classification:
    """Both splits.

    Attributes:
        train: Pictures and their labels.
        val: Likewise.
        classes: Names by label.
        findings: What is to be said.
        said: What the data were taken for, in lines.
    """

    train: Samples
    val: Samples
    classes: list[str]
    findings: Findings
    said: list[str] = field(default_factory=list)


def read_classification(
    folder: Path, check: bool = True, skip_damaged: bool = False
) -> Classification:
    """A folder with train/ and val/ (also validation, test, ...) or with the classes themselves.

    Args:
        folder: The data set.
        check: Open the pictures' headers, compare the splits.
        skip_damaged: Leave out, with a note, what cannot be opened; without, it is a problem.

    Raises:
        InputError: There is no such folder, or no classes in it.
    """
    if not folder.is_dir():
        raise InputError(
            f"no data at {folder}: data=FOLDER has train/ and val/, or train.tar and val.tar, "
            "with a folder a class in each, or the class folders alone"
        )
    findings = Findings()
    said: list[str] = []
    folders = {split: _split_folder(folder, words) for split, words in WORDS.items()}
    found = {s: _classes(path, findings) for s, path in folders.items() if path is not None}
    if not found.get("train"):
        found = {"": _classes(folder, findings)}
    if not any(found.values()):
        raise InputError(f"{folder} holds no class folders with pictures: train/CLASS/PICTURE.jpg")
    _, more = assign({s: sorted(classes) for s, classes in found.items() if classes})
    said += [more] * bool(more)
    train_by_class = found.get("train") or found[""]
    classes = sorted(name for name, paths in train_by_class.items() if paths)
    label = {name: index for index, name in enumerate(classes)}
    for name, paths in train_by_class.items():
        if not paths:
            findings.problem(
                "class folders without a picture", folder / name, "fill or remove them"
            )
    train = [(path, label[name]) for name in classes for path in train_by_class[name]]
    if "" in found:
        chosen, rule = split_off({p: p for p, _ in train}, dict(train))
        said.append(rule)
        val = [(path, number) for path, number in train if path in chosen]
        train = [(path, number) for path, number in train if path not in chosen]
    else:
        val_by_class = found.get("val") or found.get("test") or {}
        if not val_by_class:
            raise InputError(
                f"{folder} has train/ but no val/: put one there, or only class folders"
            )
        for name in sorted(val_by_class.keys() - label.keys()):
            if val_by_class[name]:
                findings.problem(
                    "classes in validation only", name, f"training has {', '.join(classes[:10])}"
                )
        for name in sorted(label.keys() - {n for n, paths in val_by_class.items() if paths}):
            findings.note("classes without a validation picture", name, "not measured")
        val = [(p, label[name]) for name in classes for p in val_by_class.get(name, [])]
    if check:
        marks: dict[Path, int] = {}
        train, val = (_checked(part, findings, skip_damaged, marks) for part in (train, val))
        find_overlap([p for p, _ in train], [p for p, _ in val], findings, marks)
    return Classification(train, val, classes, findings, said)


def _split_folder(folder: Path, words: tuple[str, ...]) -> Path | None:
    return next(
        (p for w in words for p in sorted(folder.iterdir()) if p.is_dir() and p.name.lower() == w),
        None,
    )


def _classes(folder: Path, findings: Findings) -> dict[str, list[Path]]:
    """Pictures by class; what is no picture is counted."""
    found: dict[str, list[Path]] = {}
    for entry in sorted(folder.iterdir()):
        if not entry.is_dir() or entry.name in IGNORED_FOLDERS or entry.name.startswith("."):
            if entry.is_file() and is_picture(entry):
                findings.note("pictures outside a class folder", entry, "not used")
            continue
        pictures: list[Path] = []
        for place, folders, names in os.walk(entry, followlinks=True):
            folders[:] = sorted(f for f in folders if f not in IGNORED_FOLDERS)
            for name in sorted(names):
                path = Path(place, name)
                if is_picture(path):
                    pictures.append(path)
                elif not name.startswith(".") and name not in HIDDEN:
                    suffix = path.suffix.lower() or "no suffix"
                    if suffix not in PLAIN:
                        findings.note(
                            f"files of a kind that is not read ({suffix})", path, "not used"
                        )
        found[entry.name] = pictures
    return found


def _checked(
    samples: Samples, findings: Findings, skip_damaged: bool, marks: dict[Path, int]
) -> Samples:
    headers = read_headers((path for path, _ in samples), "pictures")
    if skip_damaged:
        for path, header in headers.items():
            if header.error:
                findings.note("pictures that cannot be opened", path, "left out, as asked for")
        headers = {path: header for path, header in headers.items() if not header.error}
    note_headers(headers, findings, "mend or remove them, or set skip_corrupt=true to skip them")
    marks.update({path: header.mark for path, header in headers.items()})
    return [(path, label) for path, label in samples if path in headers]
