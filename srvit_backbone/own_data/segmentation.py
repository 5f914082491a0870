"""A data set for segmentation: pictures and masks, read, understood, checked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.headers import in_parallel, note_headers, read_headers
from srvit_backbone.own_data.mask_classes import IGNORED, MaskClasses
from srvit_backbone.own_data.mask_folders import Pair, find_folders, listed_splits, pair_folders
from srvit_backbone.own_data.masks import Scan, scan_mask
from srvit_backbone.own_data.overlap import find_overlap
from srvit_backbone.own_data.splits import assign, split_off
from srvit_backbone.own_data.turning import Turns

MANY = 8  # unknown values that are no longer named one by one
BY_FILE = (
    "SEG_CLASSES may be a file, classes.yaml with classes: and name: id, a line each, and "
    "ignore: [{}]"
)


@dataclass
class Segmentation:
    """Both splits.

    Attributes:
        train: Pictures with masks.
        val: Likewise.
        classes: What the masks' values mean.
        findings: What is to be said.
        said: What the data were taken for, in lines.
    """

    train: list[Pair]
    val: list[Pair]
    classes: MaskClasses
    findings: Findings
    said: list[str] = field(default_factory=list)


def read_segmentation(
    root: Path,
    classes: MaskClasses,
    folders: Mapping[str, tuple[Path, Path]] | None = None,
    *,
    exif: str = "auto",
    check: bool = True,
    only: str = "",
) -> Segmentation:
    """Pictures and masks of a folder.

    Args:
        root: The data set.
        classes: What the masks' values mean.
        folders: Of pictures and masks by split, where they are named; else they are looked for.
        exif: Whether masks are of the picture as it is seen, see ``Turns``.
        check: Open headers and masks, compare the splits.
        only: "train" or "val" where the other split is not needed and may not be there.

    Raises:
        InputError: No layout is recognised.
    """
    findings = Findings()
    said: list[str] = []
    if folders is None:
        places = find_folders(root, only)
        said += [
            f"{split or 'all'}: pictures in {pictures}, masks in {masks}"
            for split, (pictures, masks) in places.items()
        ]
    else:
        places = dict(folders)
    if only in places:
        places = {only: places[only]}
    found = {split: pair_folders(*pair, findings) for split, pair in places.items()}
    lists = listed_splits(root) if set(found) == {""} else {}
    if lists:
        every = found.pop("")
        found = {s: [p for p in every if p.picture.stem in names] for s, names in lists.items()}
    splits, more = assign(found) if only not in found else ({"train": [], "val": [], **found}, "")
    said += [more] * bool(more)
    train, val = list(splits["train"]), list(splits["val"])
    if train and not val and not findings.problems and only not in found:
        chosen, rule = split_off({pair: pair.picture for pair in train})
        said.append(rule)
        val = [pair for pair in train if pair in chosen]
        train = [pair for pair in train if pair not in chosen]
    if check:
        turns = Turns(exif)
        scans = {}
        for name, pairs in (("training", train), ("validation", val)):
            scans.update(_check(name, pairs, classes, turns, findings))
        turns.settle(str(root), findings)
        train, val = (
            [replace(pair, turn=turns.of(pair.picture)[0]) for pair in pairs]
            for pairs in (train, val)
        )
        _check_values([scans[p.mask] for p in train or val], classes, findings)
        find_overlap((p.picture for p in train), (p.picture for p in val), findings)
    return Segmentation(train, val, classes, findings, said)


def _check(
    name: str, pairs: list[Pair], classes: MaskClasses, turns: Turns, findings: Findings
) -> dict[Path, Scan]:
    headers = read_headers((pair.picture for pair in pairs), f"{name} pictures")
    note_headers(headers, findings)
    work = partial(scan_mask, classes=classes)
    masks = [pair.mask for pair in pairs]
    scans = dict(zip(masks, in_parallel(work, masks, f"{name} masks"), strict=True))
    unknown = Counter(value for scan in scans.values() for value in scan.unknown)
    for pair in pairs:
        header, scan = headers[pair.picture], scans[pair.mask]
        if scan.error:
            findings.problem(f"masks that cannot be read ({scan.error})", pair.mask)
            continue
        if header.error:
            continue
        if scan.size not in (header.size, header.stored):
            findings.problem(
                "masks of another size than their picture",
                f"{pair.mask} is {scan.size[0]} x {scan.size[1]}, its picture "
                f"{header.size[0]} x {header.size[1]}",
                "masks have a value for each pixel of their picture",
            )
        turns.add(pair.picture, pair.picture.name, header, scan.size)
        _name_unknown(pair.mask, scan, unknown, classes, findings)
        if scan.trained == {IGNORED} and not scan.unknown:
            findings.note(f"{name} masks without a labelled pixel", pair.mask, "nothing is learnt")
    return scans


def _name_unknown(
    mask: Path, scan: Scan, unknown: Counter, classes: MaskClasses, findings: Findings
) -> None:
    kind = "colour" if unknown and isinstance(next(iter(unknown)), tuple) else "id"
    count = len(classes.names)
    if len(unknown) > MANY and scan.unknown:
        values = sorted(unknown)
        findings.problem(
            f"masks with {len(values)} {kind}s that are no class ({values[0]} to {values[-1]})",
            mask,
            f"there are {count} classes: masks that were scaled smoothly or drawn with soft edges "
            f"hold values in between, draw them anew with hard ones; else {BY_FILE.format('255')}",
        )
        return
    for value in scan.unknown:
        known = ", ".join(str(v) for v in list(classes.ids)[:10])
        findings.problem(
            f"masks with the {kind} {value}, which is no class",
            mask,
            f"{count} classes have the ids {known}; {BY_FILE.format(f'{value}, 255')} says which "
            "ids are which class and which are no label"
            if kind == "id"
            else f"name it in {classes.source}",
        )


def _check_values(scans: list[Scan], classes: MaskClasses, findings: Findings) -> None:
    """What only all training masks together tell."""
    usable = [scan for scan in scans if not scan.error]
    if not usable:
        return
    seen = frozenset().union(*(scan.trained for scan in usable))
    values = frozenset().union(*(scan.values for scan in usable))
    if values <= {0, 255} and 255 in values and classes.ids.get(255) == IGNORED:
        if len(classes.names) > 1 or 0 not in values:
            first = classes.names[0]
            other = classes.names[1] if len(classes.names) > 1 else first
            findings.problem(
                "masks hold 0 and 255 only, and 255 means 'no label': the object would be left out",
                "",
                f"write classes.yaml with classes: {{{first}: 0, {other}: 255}} and give "
                "SEG_CLASSES=classes.yaml",
            )
        return
    for index, name in enumerate(classes.names):
        if index not in seen:
            findings.note("classes that no training mask shows", name, "never learnt")
    if seen == {IGNORED}:
        findings.problem("no training mask labels a pixel", "")
