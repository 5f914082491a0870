"""COCO json, as annotation tools, notebooks and converters write it, normalised."""

from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from srvit_backbone.own_data.boxes import Note, in_pixels, read_boxes
from srvit_backbone.own_data.files import PictureFolder, read_json
from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.headers import Header, note_headers, read_headers
from srvit_backbone.own_data.objects import Labelled, Objects
from srvit_backbone.own_data.outlines import number
from srvit_backbone.own_data.turning import Turns

LISTS = ("images", "annotations", "categories")


def read_coco(path: Path, folder: Path, findings: Findings) -> Labelled:
    """A json file and the folder of its pictures.

    Raises:
        InputError: The file cannot be read.
    """
    content = read_json(path)
    lists = content if isinstance(content, dict) else {}
    for key in LISTS:
        if key not in lists and key == "annotations":
            findings.problem(f"{path.name} lists no annotations", path, "an empty list will do")
        elif not isinstance(lists.get(key), list):
            findings.problem(
                f"{path.name} is not in COCO's form: no list {key}",
                path,
                f"it needs the lists {', '.join(LISTS)}",
            )
    found = {key: [e for e in lists.get(key) or [] if isinstance(e, dict)] for key in LISTS}
    return Labelled(str(path), folder, found["images"], found["annotations"], found["categories"])


def normalise(raw: Labelled, findings: Findings, exif: str = "auto", check: bool = True) -> Objects:
    """Labels of any sort as all of this package takes them, with findings about them.

    Args:
        raw: From ``read_coco`` or another format's reader.
        findings: Added to.
        exif: Whether coordinates are of the picture as it is seen ("upright") or of its stored
            pixels ("stored"); "auto" goes by the sizes that the labels state.
        check: Open the pictures' headers; without, sizes are believed.
    """
    images, same = _pictures(raw, findings)
    if not images:
        findings.problem("no picture is listed", raw.where)
    paths = {key: raw.folder / image["file_name"] for key, image in images.items()}
    headers = read_headers(paths.values(), f"{Path(raw.where).name}: pictures") if check else {}
    note_headers(headers, findings)
    turns = Turns(exif if raw.turned == "" or exif != "auto" else raw.turned)
    for key, image in images.items():
        _size(image, headers.get(paths[key]), turns, key, findings)
    turns.settle(raw.where, findings)
    categories, renamed = _categories(raw, findings)
    numbers = {key: index for index, key in enumerate(images, 1)}
    for key, image in images.items():
        image["id"] = numbers[key]
    notes: list[Note] = []
    strangers = 0
    for note in raw.annotations:
        key = same.get(_key(note.get("image_id")), _key(note.get("image_id")))
        category = renamed.get(_key(note.get("category_id")))
        if key not in images:
            strangers += 1
            findings.note(
                "objects of pictures that are not listed", f"{raw.where}, {note.get('id')}",
                "they are left out",
            )  # fmt: skip
        elif category is None:
            findings.problem(
                f"objects of category_id {note.get('category_id')}, which is no category",
                f"{raw.where}, annotation {note.get('id')}",
                "list it among the categories, or remove them",
            )
        else:
            notes.append((note, images[key], turns.of(key), category))
    if strangers and not notes:
        findings.problem("no object is of a listed picture", raw.where, "image_id must be an id")
    if raw.shares:
        notes = [(in_pixels(note, image), image, turn, c) for note, image, turn, c in notes]
    annotations = read_boxes(notes, raw.where, findings)
    marks = {path: header.mark for path, header in headers.items()}
    objects = Objects(raw.where, raw.folder, list(images.values()), annotations, categories, marks)
    _note_empty(objects, findings)
    return objects


def _key(value: Any) -> Hashable:
    """An id: 7, 7.0 and "7" are the same."""
    try:
        whole = number(value)
        return int(whole) if whole == int(whole) else whole
    except ValueError:
        return value if isinstance(value, str) else None


def _pictures(
    raw: Labelled, findings: Findings
) -> tuple[dict[Hashable, dict[str, Any]], dict[Hashable, Hashable]]:
    """Pictures by id, and of pictures listed twice which id stands for both."""
    folder = PictureFolder(raw.folder)
    images: dict[Hashable, dict[str, Any]] = {}
    by_file: dict[str, Hashable] = {}
    same: dict[Hashable, Hashable] = {}
    for entry in raw.images:
        key, name = _key(entry.get("id")), entry.get("file_name")
        if key is None or not isinstance(name, str) or not name:
            findings.problem("pictures without id or file_name", f"{raw.where}, {entry}"[:200])
            continue
        found = folder.find(name)
        if found is None:
            findings.problem(
                f"pictures are missing in {raw.folder}", name,
                "put them there, or take them out of the labels",
            )  # fmt: skip
        elif not found[1]:
            findings.note("pictures found under another spelling or folder", name, "used")
        try:
            name = str((found[0] if found else raw.folder / name).relative_to(raw.folder))
        except ValueError:  # by an absolute path, elsewhere
            name = str(found[0]) if found else name
        if key in images and images[key]["file_name"] != name:
            findings.problem(
                "ids are used for several pictures", f"{raw.where}, id {entry.get('id')}",
                "give every picture an id of its own: which objects are whose cannot be told",
            )  # fmt: skip
            continue
        if name in by_file:
            same[key] = by_file[name]
            findings.note("pictures are listed more than once", name, "taken as one")
            continue
        by_file[name] = key
        stated = {side: entry.get(side) for side in ("width", "height")}
        images[key] = {"id": key, "file_name": name, **stated}
    return images, same


def _size(
    image: dict[str, Any], header: Header | None, turns: Turns, key: Hashable, findings: Findings
) -> None:
    """Settle a picture's upright size; ``turns`` learns how its labels lie."""
    try:
        stated = int(number(image["width"])), int(number(image["height"]))
    except ValueError:
        stated = None
    if header is None or header.error:
        if stated is None and header is None:
            findings.problem("pictures without width and height", image["file_name"])
        image["width"], image["height"] = stated or (0, 0)
        return
    if stated is None:
        findings.note("width or height is missing", image["file_name"], "read from the picture")
    image["width"], image["height"] = header.size
    if stated not in (None, header.size, header.stored):
        findings.problem(
            "pictures of another size than the labels say",
            f"{image['file_name']} is {header.size[0]} x {header.size[1]}, labelled as "
            f"{stated[0]} x {stated[1]}",
            "train on the pictures that were labelled",
        )
    turns.add(key, image["file_name"], header, stated)


def _categories(
    raw: Labelled, findings: Findings
) -> tuple[list[dict[str, Any]], dict[Hashable, int]]:
    """Classes with ids from 1, and the new id of each old one."""
    keyed: dict[Hashable, str] = {}
    for entry in raw.categories:
        key, name = _key(entry.get("id")), entry.get("name")
        if key is None:
            findings.problem("categories without an id", f"{raw.where}, {name}")
            continue
        if name is None or not str(name).strip():
            name = f"class {key}"
            findings.note("categories without a name", f"{raw.where}, {key}", f"called {name!r}")
        if keyed.get(key, str(name)) != str(name):
            findings.problem(
                "category ids are used for several classes", f"{raw.where}, id {key}",
                "give every class an id of its own",
            )  # fmt: skip
        keyed[key] = str(name)
    if not keyed:
        findings.problem("no category is listed", raw.where)
    order: list[Any] = sorted(keyed, key=lambda k: (isinstance(k, str), k))
    names: dict[str, int] = {}
    renamed: dict[Hashable, int] = {}
    for key in order:
        if keyed[key] in names:
            findings.note("categories of one name", f"{raw.where}, {keyed[key]}", "taken as one")
        renamed[key] = names.setdefault(keyed[key], len(names) + 1)
    return [{"id": index, "name": name} for name, index in names.items()], renamed


def _note_empty(objects: Objects, findings: Findings) -> None:
    counts = Counter(note["image_id"] for note in objects.annotations if not note["iscrowd"])
    for image in objects.images:
        if not counts[image["id"]]:
            findings.note(
                "pictures without an object", image["file_name"], "trained as such: nothing there"
            )
    if objects.images and not counts:
        findings.problem("no object is labelled", objects.where)
