"""Result files that are whole or not there, and what tells files apart."""

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from srvit_backbone.errors import InputError


def write_json(path: Path, content: Any, indent: int | None = 2) -> None:
    """Write ``content`` as json, whole or not at all.

    Numbers that are not finite become null, as json has none, and what json does not know, text.
    """
    unfinished = path.with_suffix(".unfinished")
    text = json.dumps(_finite(content), indent=indent, default=str)
    unfinished.write_text(text + "\n", encoding="utf-8")
    os.replace(unfinished, path)


def write_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a folder, which gets its name when it is complete.

    Raises:
        InputError: The folder exists already, or cannot be written.
    """
    if folder.exists():
        raise InputError(f"{folder} exists already: delete it first to make it anew")
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        write(unfinished)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error}") from None
    os.replace(unfinished, folder)


def sha256(path: str | os.PathLike[str]) -> str:
    """Digest of a file's content, in hexadecimal."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(key): _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content
