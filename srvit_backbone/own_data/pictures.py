"""The one reader of pictures: every training, evaluation, check and drawing sees what it gives.

A picture is (H, W, 3) in RGB, uint8, upright as its EXIF orientation says. 16 bits become 8 by
value / 257, rounded, so that black stays black and white white. Transparency is dropped, a grey
channel repeated three times, CMYK converted; of several frames or pages the first is taken.
"""

import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image

from srvit_backbone.errors import InputError

# In lower case; names are compared without regard to it.
SUFFIXES = frozenset(
    [
        ".jpg",
        ".jpeg",
        ".jpe",
        ".jfif",
        ".png",
        ".bmp",
        ".dib",
        ".webp",
        ".tif",
        ".tiff",
        ".gif",
        ".ppm",
        ".pgm",
        ".pbm",
        ".jp2",
        ".avif",
        ".heic",
        ".heif",
    ]
)
HEIF = (".heic", ".heif")
ORIENTATION = 0x0112
# EXIF orientation -> what brings the stored picture upright.
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N")
UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)


def is_picture(path: Path) -> bool:
    """By its suffix, in any case; files that systems leave beside pictures are none."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith("._")


def find_pictures(inputs: Iterable[str]) -> list[Path]:
    """The files named, and the pictures in the folders named.

    Raises:
        InputError: There is none.
    """
    inputs = list(inputs)
    found: list[Path] = []
    for path in map(Path, inputs):
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if is_picture(p) and p.is_file())
        elif path.is_file():
            found.append(path)
        else:
            raise InputError(f"no picture or folder {path}")
    if not found:
        raise InputError(f"no pictures ({', '.join(sorted(SUFFIXES))}) in {', '.join(inputs)}")
    return found


def read_image(path: str | Path) -> np.ndarray:
    """A picture as (H, W, 3) in RGB, uint8, upright.

    Raises:
        InputError: It cannot be opened, or its values have no 8-bit meaning.
    """
    try:
        with open_picture(path) as picture:
            # Not a view: torch warns of arrays that cannot be written.
            return np.array(to_rgb(upright(picture)))
    except UNREADABLE as error:
        raise InputError(f"{path} is not a picture that can be opened: {reason(error)}") from None


def open_picture(file: object) -> Image.Image:
    """Pillow's Image.open, with HEIF where pillow-heif is installed and without its warnings."""
    name = str(getattr(file, "name", file))
    if name.lower().endswith(HEIF):
        try:
            import pillow_heif
        except ImportError:
            raise ValueError("HEIF pictures need: pip install pillow-heif") from None
        pillow_heif.register_heif_opener()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd tags, which nobody here reads
        return Image.open(file)  # type: ignore[arg-type]


def orientation(picture: Image.Image) -> int:
    """EXIF orientation, 1 to 8, from the header alone."""
    if picture.format == "PNG" and not {"exif", "Raw profile type exif"} & picture.info.keys():
        return 1  # Pillow would decode the whole picture to look behind its pixels
    try:
        value = picture.getexif().get(ORIENTATION, 1)
    except Exception:  # damaged metadata of any sort, which browsers ignore too
        return 1
    return value if value in UPRIGHT else 1


def upright(picture: Image.Image) -> Image.Image:
    """The picture turned as its EXIF orientation says."""
    turn = UPRIGHT.get(orientation(picture))
    return picture if turn is None else picture.transpose(turn)


def to_rgb(picture: Image.Image) -> Image.Image:
    """Any mode as 8-bit RGB, see above.

    Raises:
        ValueError: The values have no agreed range.
    """
    if picture.mode in SIXTEEN_BITS or picture.mode == "I":
        values = np.asarray(picture).astype(np.int64)
        if values.size and not 0 <= values.min() <= values.max() <= 65535:
            raise ValueError("32-bit values beyond 16 bits: convert it to 8 or 16 bits")
        return Image.fromarray(((values + 128) // 257).astype(np.uint8)).convert("RGB")
    if picture.mode == "F":
        raise ValueError("float values, whose black and white nobody knows: convert it to 8 bits")
    if picture.mode == "P" and "transparency" in picture.info:
        picture = picture.convert("RGBA")
    return picture.convert("RGB")


def reason(error: Exception) -> str:
    """Why a picture could not be opened, in words that help."""
    if isinstance(error, Image.DecompressionBombError):
        return "it is too large (over 178 megapixels): cut it into tiles"
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return " ".join(str(error).split())


def contact_sheet(pictures: Iterable[np.ndarray], side: int = 480, columns: int = 4) -> Image.Image:
    """Pictures (H, W, 3) in RGB, uint8, in rows, each made to fit a square of ``side`` pixels."""
    tiles = [Image.fromarray(picture) for picture in pictures]
    columns = min(columns, len(tiles))
    sheet = Image.new("RGB", (columns * side, -(-len(tiles) // columns) * side), "white")
    for index, tile in enumerate(tiles):
        tile.thumbnail((side, side))
        sheet.paste(tile, (index % columns * side, index // columns * side))
    return sheet
