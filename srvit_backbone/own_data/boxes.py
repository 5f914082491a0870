"""Objects of a COCO json, one by one: box, outline, area, crowd flag."""

from collections.abc import Sequence
from typing import Any

from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.geometry import cut_box, turn_box
from srvit_backbone.own_data.outlines import (
    Outline,
    OutlineError,
    area_of,
    box_of,
    number,
    read_outline,
    turn_outline,
)

# Of a box, what may lie outside its picture and is cut off: tools round, hands slip.
OUTSIDE = 0.2
# An object, its picture, (orientation to turn it by, stored size), its class.
Note = tuple[dict[str, Any], dict[str, Any], tuple[int, tuple[int, int]], int]


def read_boxes(notes: Sequence[Note], where: str, findings: Findings) -> list[dict[str, Any]]:
    """Normalised objects with ids from 1, and findings about them.

    pycocotools takes id 0 for "no match", and Detectron2 stops on repeated ids: so ids are given
    anew.
    """
    boxes = [_number_list(note.get("bbox")) for note, *_ in notes]
    kind = _other_form(boxes, notes)
    if kind:
        findings.problem(
            f"boxes look like {kind}", where, "COCO's are [x, y, width, height] in pixels"
        )
        return []
    ids = [str(note.get("id")) for note, *_ in notes]
    if len(set(ids)) < len(ids):
        findings.note("annotation ids are used more than once or missing", where, "given anew")
    annotations: list[dict[str, Any]] = []
    for (note, image, (orientation, stored), category), box in zip(notes, boxes, strict=True):
        place = f"{image['file_name']}, annotation {note.get('id')}"
        size = image["width"], image["height"]
        drawn_on = stored if orientation != 1 else size
        try:
            outline, changed = read_outline(note.get("segmentation"), drawn_on)
        except OutlineError as error:
            findings.problem(str(error), place, "export the labels anew, or remove the object")
            continue
        if changed and outline:
            findings.note("outlines of another form than COCO's", where, "understood")
        if outline == []:
            findings.note("objects whose outline has no area", place, "left out")
            continue
        crowd = _crowd(note, where, findings)
        outline = turn_outline(outline, orientation, drawn_on)
        given = turn_box(box, orientation, drawn_on) if box else box_of(outline)
        kept = _inside(given, size, place, findings) if given else None
        if given is None:
            findings.problem("objects without a box", place, "give them a bbox or an outline")
        if given is None or kept is None:
            continue
        found = {
            "id": len(annotations) + 1,
            "image_id": image["id"],
            "category_id": category,
            "bbox": kept,
            "area": _area(note, outline, kept, where, findings),
            "iscrowd": crowd,
        }
        if outline:
            found["segmentation"] = outline
        annotations.append(found)
    return annotations


def in_pixels(note: dict[str, Any], image: dict[str, Any]) -> dict[str, Any]:
    """An object whose coordinates are shares of its picture, in pixels."""
    sides = [image["width"], image["height"]]
    scaled = dict(note)
    if "bbox" in note:
        scaled["bbox"] = [v * sides[i % 2] for i, v in enumerate(note["bbox"])]
    if "segmentation" in note:
        scaled["segmentation"] = [
            [v * sides[i % 2] for i, v in enumerate(polygon)] for polygon in note["segmentation"]
        ]
    return scaled


def _number_list(box: Any) -> list[float] | None:
    try:
        found = [number(value) for value in box]
    except (TypeError, ValueError):
        return None
    return found if len(found) == 4 else None


def _other_form(boxes: Sequence[list[float] | None], notes: Sequence[Note]) -> str:
    """What a file's boxes are, if not COCO's: "" where they are."""
    sized = [
        (box, (max(image["width"], image["height"]), max(image["width"], image["height"])))
        for box, (_, image, _, _) in zip(boxes, notes, strict=True)
        if box is not None and image["width"]
    ]
    if not sized:
        return ""
    if all(max(box) <= 1.0 for box, _ in sized) and any(max(size) > 4 for _, size in sized):
        return "shares of the picture"
    # Either side of the picture bounds them, since they may still be turned.
    outside = sum(
        box[0] + box[2] > 1.05 * size[0] or box[1] + box[3] > 1.05 * size[1] for box, size in sized
    )
    corners = all(
        box[0] < box[2] <= 1.05 * size[0] and box[1] < box[3] <= 1.05 * size[1]
        for box, size in sized
    )
    return "corners, [x0, y0, x1, y1]" if corners and outside > 0.1 * len(sized) else ""


def _inside(
    box: list[float], size: tuple[int, int], place: str, findings: Findings
) -> list[float] | None:
    """The box cut at the picture's border; None where nothing sensible is left."""
    if box[2] <= 0 or box[3] <= 0:
        findings.note("objects whose box has no area", place, "left out")
        return None
    kept = cut_box(box, size)
    share = kept[2] * kept[3] / (box[2] * box[3])
    if share >= 1 - 1e-9:
        return box
    slip = max(-box[0], -box[1], box[0] + box[2] - size[0], box[1] + box[3] - size[1])
    if share < 1 - OUTSIDE and slip > 2:
        findings.problem(
            "boxes that reach far outside their picture",
            f"{place}: {[round(v, 1) for v in box]} in {size[0]} x {size[1]}",
            "correct them: as they are, they belong to another picture or another size of it",
        )
        return None
    if slip > 1:
        findings.note("boxes that reach a little outside their picture", place, "cut at its border")
    return kept if min(kept[2:]) > 0 else None


def _crowd(note: dict[str, Any], where: str, findings: Findings) -> int:
    value = note.get("iscrowd")
    if value is None:
        findings.note("iscrowd is missing or null", where, "taken as 0")
        return 0
    return int(value in (1, "1", True, "true"))


def _area(
    note: dict[str, Any], outline: Outline, box: list[float], where: str, findings: Findings
) -> float:
    try:
        area = number(note.get("area"))
        if area > 0:
            return area
    except ValueError:
        pass
    findings.note("area is missing", where, "computed")
    return area_of(outline, box)
