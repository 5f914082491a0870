"""Pictures that are there more than once, byte by byte. Only files of equal size are read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from srvit_backbone.files import sha256
from srvit_backbone.own_data.findings import Findings


def first_copies(
    paths: Iterable[Path], marks: Mapping[Path, int] | None = None
) -> dict[Path, Path]:
    """Of every picture that is there the first one with the same content, often itself.

    Args:
        paths: Pictures.
        marks: Of their headers; without, files are told apart by their size first.
    """
    alike: dict[int, list[Path]] = defaultdict(list)
    for path in dict.fromkeys(paths):
        if marks is not None:
            if marks.get(path):
                alike[marks[path]].append(path)
        elif path.is_file():
            alike[path.stat().st_size].append(path)
    first: dict[Path, Path] = {}
    for members in alike.values():
        known: dict[str, Path] = {}
        for path in members:
            alone = len(members) == 1
            first[path] = path if alone else known.setdefault(sha256(path), path)
    return first


def find_overlap(
    train: Iterable[Path],
    val: Iterable[Path],
    findings: Findings,
    marks: Mapping[Path, int] | None = None,
) -> None:
    """Add a problem for validation pictures that training has too.

    Validating on the training pictures themselves is taken for a wish, and noted.
    """
    train, val = list(train), list(val)
    if train and set(train) == set(val):
        findings.note("validation is on the training pictures", "", "its score says little")
        return
    first = first_copies([*train, *val], marks)
    trained = {first[path]: path for path in train if path in first}
    for path in val:
        other = trained.get(first.get(path, path))
        if other is not None:
            findings.problem(
                "validation pictures that are training pictures too",
                f"{path} is {other}",
                "take them out of one split: the score would be too good",
            )
