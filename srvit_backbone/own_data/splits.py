"""Which files are for training and which for validation."""

import random
import re
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from srvit_backbone.own_data.overlap import first_copies

SHARE, SEED = 0.2, 0  # of what is split off where no validation split is there
WORDS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation", "dev", "eval"),
    "test": ("test", "testing"),
}
Item = TypeVar("Item", bound=Hashable)


def split_of(path: Path, root: Path) -> str:
    """What a file's or its nearest folder's name says: "train", "val", "test", or nothing."""
    parts = [path.stem if path.suffix else path.name, *(p.name for p in path.parents)]
    depth = len(path.relative_to(root).parts)
    for part in parts[:depth]:
        words = re.findall(r"[a-z]+", part.lower())
        for split, known in WORDS.items():
            if any(word in known for word in words):
                return split
    return ""


def assign(found: Mapping[str, Sequence[Item]]) -> tuple[dict[str, Sequence[Item]], str]:
    """Train and val of what was found by split (also ""), and what is to be said about it."""
    train, val, test = (found.get(split, ()) for split in WORDS)
    if not train:
        train = found.get("", ())
        if not train:
            train, val = val or test, ()
    if val:
        said = "the test split is not used" if test else ""
    elif test:
        val, said = test, "the test split is used for validation, as there is no other"
    else:
        said = ""
    return {"train": train, "val": val}, said


def split_off(
    pictures: Mapping[Item, Path], classes: Mapping[Item, Hashable] | None = None
) -> tuple[set[Item], str]:
    """Pictures for validation: a fifth, drawn with a fixed seed, of each class if there are any.

    Pictures that are there twice stay in one split.

    Args:
        pictures: Item -> its file.
        classes: Item -> its class.

    Returns:
        The items, and the rule in words.
    """
    first = first_copies(pictures.values())
    copies: dict[Path, list[Item]] = {}
    for item, path in pictures.items():
        copies.setdefault(first.get(path, path), []).append(item)
    groups: dict[Hashable, list[Path]] = {}
    for path, members in copies.items():
        groups.setdefault(classes[members[0]] if classes else None, []).append(path)
    chosen: set[Item] = set()
    for paths in groups.values():
        order = sorted(paths)
        random.Random(SEED).shuffle(order)
        count = max(1, round(SHARE * len(order))) if len(order) > 1 else 0
        chosen |= {item for path in order[:count] for item in copies[path]}
    of_each = " of each class" if classes else ""
    return chosen, (
        f"no validation split: {SHARE:.0%}{of_each} was drawn with seed {SEED} "
        f"({len(chosen)} pictures)"
    )
