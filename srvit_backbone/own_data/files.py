"""Text files as people have them, and pictures that labels name."""

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from srvit_backbone.errors import InputError
from srvit_backbone.own_data.pictures import is_picture

# What systems and notebooks leave behind.
IGNORED_FOLDERS = {"__MACOSX", ".ipynb_checkpoints", "@eaDir", ".git", ".thumbnails"}


def read_text(path: Path) -> str:
    """Text of a file in UTF-8 or UTF-16, whatever the locale, with or without a byte order mark.

    Raises:
        InputError: It is not there, or in neither.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    for encoding in ("utf-16",) if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise InputError(f"{path} is not text in UTF-8: save it as UTF-8")


def read_json(path: Path) -> Any:
    """Content of a json file.

    Raises:
        InputError: It is not there, or no json.
    """
    text = read_text(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is not json: {error}") from None


class PictureFolder:
    """Pictures by the names that labels use for them.

    Args:
        folder: Where they are, subfolders included.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, name: str) -> tuple[Path, bool] | None:
        """The file of a name, and whether it was found as it stands; None if there is none.

        Else it is looked for with the separators of other systems, without regard to case, and by
        its last part alone, if that is unambiguous.
        """
        path = self.folder / name
        if path.is_file():
            return path, True
        plain = unquote(name).replace("\\", "/").removeprefix("./")
        path = self.folder / plain
        if path.is_file():
            return path, False
        last = plain.rsplit("/", 1)[-1].lower()
        found = self._by_name.get(last, [])
        # The longest common tail decides among files of one name in several folders.
        tails = [f for f in found if str(f).replace("\\", "/").lower().endswith(plain.lower())]
        found = tails or found
        return (found[0], False) if len(found) == 1 else None

    def of_stem(self, stem: str) -> list[Path]:
        """All pictures of a name without its suffix."""
        return self._by_stem.get(stem, [])

    @cached_property
    def _by_stem(self) -> dict[str, list[Path]]:
        stems: dict[str, list[Path]] = {}
        for path in (p for paths in self._by_name.values() for p in paths if is_picture(p)):
            stems.setdefault(path.stem, []).append(path)
        return stems

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        names: dict[str, list[Path]] = {}
        for folder, folders, files in os.walk(self.folder, followlinks=True):
            folders[:] = [f for f in folders if f not in IGNORED_FOLDERS]
            for file in files:
                names.setdefault(file.lower(), []).append(Path(folder, file))
        return names
