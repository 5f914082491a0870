"""What pictures' headers tell, read in parallel: size, mode, orientation, a missing end."""

import multiprocessing
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from tqdm import tqdm

from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.pictures import UNREADABLE, open_picture, orientation, reason, to_rgb

MANY = 1000  # items from which on processes and progress are worth starting
CHUNK = 100  # items that a process takes at once
TAIL = 4096  # bytes in which the end of a picture is looked for
ENDS = {"JPEG": b"\xff\xd9", "PNG": b"IEND"}
NOTES = {
    "L": "grey pictures",
    "1": "black and white pictures",
    "LA": "pictures with transparency",
    "RGBA": "pictures with transparency",
    "PA": "pictures with transparency",
    "CMYK": "CMYK pictures",
    "I;16": "16-bit pictures",
    "I;16B": "16-bit pictures",
    "I;16L": "16-bit pictures",
    "I": "16-bit pictures",
}
DONE = {
    "grey pictures": "the channel is repeated three times",
    "black and white pictures": "the channel is repeated three times",
    "pictures with transparency": "it is dropped",
    "CMYK pictures": "they are converted to RGB",
    "16-bit pictures": "values are divided by 257",
}
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Header:
    """A picture's header.

    Attributes:
        size: Width and height in pixels, upright.
        stored: Width and height as stored.
        orientation: EXIF's, 1 to 8.
        mode: Pillow's.
        frames: Frames or pages; 1 where nobody counted.
        error: Why it cannot be used, "" if it can.
        mark: Of the file's length and end: files of other marks have other contents.
    """

    size: tuple[int, int] = (0, 0)
    stored: tuple[int, int] = (0, 0)
    orientation: int = 1
    mode: str = ""
    frames: int = 1
    error: str = ""
    mark: int = 0


def read_header(path: str | Path) -> Header:
    """A picture's header; its pixels are decoded only where its end is missing."""
    try:
        with open(path, "rb") as file, open_picture(file) as picture:
            width, height = picture.size
            turn = orientation(picture)
            frames = getattr(picture, "n_frames", 1) if picture.format == "TIFF" else 1
            error = "float values: convert it to 8 bits" if picture.mode == "F" else ""
            mark, whole = _read_end(file, picture.format)
            if picture.mode == "I":
                to_rgb(picture)  # whether its values fit 16 bits
            elif not whole:
                picture.load()
        size = (height, width) if turn >= 5 else (width, height)
        return Header(size, (width, height), turn, picture.mode, frames, error, mark)
    except UNREADABLE as error:
        return Header(error=reason(error))


def _read_end(file: BinaryIO, kind: str | None) -> tuple[int, bool]:
    """The file's mark, and whether its end is there, as far as one can tell."""
    position = file.tell()
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - TAIL))
    tail = file.read()
    file.seek(position)
    return zlib.crc32(tail, length), ENDS.get(kind or "", b"") in tail


def in_parallel(work: Callable[[Item], Result], items: Sequence[Item], what: str) -> list[Result]:
    """``work`` on every item, in order, by several processes where there are many items.

    Processes are forked, as those of torch's data loaders are, and shown with progress on a
    terminal. Threads would wait for Python's lock most of the time.
    """
    if len(items) < MANY or "fork" not in multiprocessing.get_all_start_methods():
        return [work(item) for item in items]
    chunks = [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]
    results: list[Result] = []
    count = max(2, os.cpu_count() or 1)
    with (
        multiprocessing.get_context("fork").Pool(count) as pool,
        tqdm(total=len(items), desc=what, disable=None, leave=False) as bar,
    ):
        for done in pool.imap(partial(_each, work), chunks):
            results += done
            bar.update(len(done))
    return results


def _each(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    return [work(item) for item in items]


def read_headers(paths: Iterable[Path], what: str = "pictures") -> dict[Path, Header]:
    """Headers by path."""
    unique = list(dict.fromkeys(paths))
    return dict(zip(unique, in_parallel(read_header, unique, what), strict=True))


def note_headers(
    headers: dict[Path, Header], findings: Findings, damaged: str = "mend or remove them"
) -> None:
    """Problems and notes about pictures themselves; ``damaged`` says what to do about those."""
    for path, header in headers.items():
        if header.error:
            what = "pictures are missing" if "no such file" in header.error else ""
            findings.problem(
                what or f"pictures that cannot be opened ({header.error})",
                path,
                "put them there, or take them out of the labels" if what else damaged,
            )
            continue
        kind = NOTES.get(header.mode)
        if kind:
            findings.note(kind, path, DONE[kind])
        if header.frames > 1:
            findings.note("pictures of several pages", path, "the first is used")
