"""Result files that are whole or not there, and what tells files apart."""

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, content: Any) -> None:
    """Write ``content`` as json, whole or not at all.

    Numbers that are not finite become null, as json has none, and what json does not know, text.
    """
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(_finite(content), indent=2, default=str) + "\n")
    os.replace(unfinished, path)


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
