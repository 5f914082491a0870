"""A data set that is there whole or not at all."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from srvit_backbone.errors import InputError


def write_whole(folder: Path, write: Callable[[Path], None]) -> None:
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


def progress(count: int, what: str) -> Iterator[int]:
    """Count up to ``count``, saying so on one line."""
    for index in range(count):
        yield index
        if sys.stdout.isatty() or index + 1 == count:
            print(
                f"\r{what}: {index + 1} of {count}",
                end="\n" if index + 1 == count else "",
                flush=True,
            )
