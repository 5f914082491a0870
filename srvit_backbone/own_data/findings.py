"""What a check finds, and the checks that all kinds of data sets share."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from srvit_backbone.files import sha256

# Modes that every framework here turns into RGB without loss.
PLAIN_MODES = ("RGB", "P")
NOTED_MODES = {
    "L": "is grey: its one channel will be repeated three times",
    "1": "is black and white: its one channel will be repeated three times",
    "LA": "has transparency, which will be dropped",
    "RGBA": "has transparency, which will be dropped",
}
ORIENTATION = 0x0112


@dataclass(frozen=True)
class Finding:
    """Something about a data set.

    Args:
        where: File, or file and entry.
        what: What is wrong, and what to do where that is not plain.
        harmless: Worth knowing, but training takes it as it should.
    """

    where: str
    what: str
    harmless: bool = False

    def __str__(self) -> str:
        return f"{'note' if self.harmless else 'PROBLEM'}: {self.where}: {self.what}"


def check_picture(path: Path) -> tuple[list[Finding], tuple[int, int] | None]:
    """Open a picture as far as its last pixel; its findings and (width, height) as stored."""
    if not path.is_file():
        return [Finding(str(path), "is missing")], None
    try:
        with Image.open(path) as picture:
            picture.load()
            size, mode = picture.size, picture.mode
            orientation = picture.getexif().get(ORIENTATION, 1)
    except (OSError, ValueError, SyntaxError) as error:
        return [Finding(str(path), f"cannot be opened as a picture ({error})")], None
    findings = []
    if mode in NOTED_MODES:
        findings.append(Finding(str(path), NOTED_MODES[mode], harmless=True))
    elif mode not in PLAIN_MODES:
        findings.append(
            Finding(str(path), f"has mode {mode}, not 8 bits a channel: convert it to 8-bit RGB")
        )
    if orientation != 1:
        findings.append(
            Finding(
                str(path),
                f"is turned by its EXIF orientation {orientation}, which not every reader follows: "
                "turn the pixels and remove the tag",
            )
        )
    return findings, size


def check_overlap(train: Iterable[Path], val: Iterable[Path]) -> list[Finding]:
    """Pictures of the validation split that the training split has too, byte by byte."""
    known = {sha256(path): path for path in train if path.is_file()}
    return [
        Finding(str(path), f"is the training picture {known[digest]}: the score will be too good")
        for path in val
        if path.is_file() and (digest := sha256(path)) in known
    ]
