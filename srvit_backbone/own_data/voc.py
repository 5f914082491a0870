"""Pascal VOC's xml files, one a picture."""

import xml.etree.ElementTree as ET
from pathlib import Path

from srvit_backbone.own_data.files import PictureFolder, read_text
from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.objects import Labelled
from srvit_backbone.own_data.outlines import number
from srvit_backbone.own_data.splits import split_of

CORNERS = ("xmin", "ymin", "xmax", "ymax")


def find_voc(folder: Path, findings: Findings) -> dict[str, list[Labelled]]:
    """Labels by split of a folder with xml files in VOC's form; {} if it has none."""
    roots = {}
    for path in sorted(folder.rglob("*.xml")):
        root = _parse(path, findings)
        if root is not None and root.tag == "annotation":
            roots[path] = root
    if not roots:
        return {}
    listed = {
        split: set(read_text(file).split())
        for split in ("train", "val", "test")
        if (file := folder / "ImageSets" / "Main" / f"{split}.txt").is_file()
    }
    splits: dict[str, dict[Path, ET.Element]] = {}
    for path, root in roots.items():
        own = next((s for s, names in listed.items() if path.stem in names), None)
        if own is None:
            if listed:
                findings.note("labels that no list in ImageSets/Main names", path, "not used")
                continue
            own = split_of(path, folder)
        splits.setdefault(own, {})[path] = root
    names = sorted({_text(o, "name") for root in roots.values() for o in root.iter("object")})
    ids = {name: index for index, name in enumerate(names, 1)}
    pictures = PictureFolder(folder)
    return {s: [_read(folder, own, ids, pictures, findings)] for s, own in splits.items()}


def _parse(path: Path, findings: Findings) -> ET.Element | None:
    try:
        return ET.fromstring(path.read_bytes())
    except (ET.ParseError, ValueError, OSError) as error:
        findings.problem(
            "xml files that cannot be read", f"{path} ({error})", "mend or remove them"
        )
        return None


def _text(element: ET.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _read(
    folder: Path,
    roots: dict[Path, ET.Element],
    ids: dict[str, int],
    pictures: PictureFolder,
    findings: Findings,
) -> Labelled:
    labels = Labelled(str(folder), folder)
    labels.categories = [{"id": index, "name": name} for name, index in ids.items()]
    for key, (path, root) in enumerate(roots.items(), 1):
        name = _picture_of(path, _text(root, "filename"), folder, pictures)
        size = root.find("size")
        sides = {} if size is None else {s: _text(size, s) for s in ("width", "height")}
        # Tools that do not know the size write 0.
        stated = {s: v for s, v in sides.items() if v not in ("", "0")}
        labels.images.append({"id": key, "file_name": name, **stated})
        for element in root.iter("object"):
            box = element.find("bndbox")
            try:
                corners = [number(_text(box, c)) for c in CORNERS] if box is not None else None
            except ValueError:
                corners = None
            if corners is None:
                findings.problem("objects without a box", path, "give them a bndbox")
                continue
            x0, x1 = sorted(corners[::2])
            y0, y1 = sorted(corners[1::2])
            labels.annotations.append(
                {
                    "id": len(labels.annotations) + 1,
                    "image_id": key,
                    "category_id": ids[_text(element, "name")],
                    "bbox": [x0, y0, x1 - x0, y1 - y0],
                    "area": (x1 - x0) * (y1 - y0),
                    "iscrowd": 0,
                }
            )
    return labels


def _picture_of(path: Path, stated: str, folder: Path, pictures: PictureFolder) -> str:
    """The picture of an xml file: as it says, beside it, or of its name anywhere below."""
    names = [stated] if stated else []
    if stated:
        beside = path.parent / stated
        if beside.is_file():
            return str(beside.relative_to(folder))
    found = pictures.find(stated) if stated else None
    if found is None:
        same = pictures.of_stem(path.stem)
        if len(same) == 1:
            return str(same[0].relative_to(folder))
    return str(found[0].relative_to(folder)) if found else (names or [f"{path.stem}.jpg"])[0]
