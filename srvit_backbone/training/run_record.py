"""One machine-readable file a run: what was run, on what, with what, and how it ended."""

import hashlib
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from srvit_backbone.errors import InputError
from srvit_backbone.files import sha256, write_json

FILE = "run.json"


class RunRecord:
    """``run.json`` of a run's folder; written at the start, and again at the end.

    A run that is resumed adds a session to it, with the machine and the versions it went on with.
    A session that was cut off has no wall time. To be used by the first process only.

    Args:
        folder: The run's.
        config: Resolved, as json takes it.
        seed: Of the run.
        images_a_step: Images between two numbers on the step axis of the run's curves.
        data: Fingerprints of the splits, by their names.
        weights: File of initial weights, None for none; of a resumed run its first session's count.
        processes: Of the run.
        resumed: Go on with the record in the folder, if there is one.
    """

    def __init__(
        self,
        folder: Path,
        *,
        config: dict[str, Any],
        seed: int | None,
        images_a_step: int,
        data: dict[str, dict[str, Any]],
        weights: str | None,
        processes: int,
        resumed: bool,
    ) -> None:
        self.path = Path(folder, FILE)
        earlier = read_record(folder) if resumed and self.path.exists() else None
        if earlier:
            initial = earlier["weights"]
        else:
            initial = {"file": str(weights), "sha256": sha256(weights)} if weights else None
        self.session: dict[str, Any] = {
            "command": shlex.join(sys.argv),
            "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "git_revision": git_revision(),
            "devices": _devices(),
            "processes": processes,
            "versions": _versions(),
            "wall_time_s": None,
            "peak_memory_mib": None,
        }
        self.content = {
            "config": config,
            "seed": seed,
            "images_a_step": images_a_step,
            "data": data,
            "weights": initial,
            "results": None,
            "sessions": [*(earlier["sessions"] if earlier else []), self.session],
        }
        self.began = time.monotonic()
        write_json(self.path, self.content)

    def finish(self, results: dict[str, Any]) -> None:
        """Add results, wall time and peak memory."""
        self.session["wall_time_s"] = round(time.monotonic() - self.began, 1)
        self.session["peak_memory_mib"] = _peak_memory()
        self.content["results"] = results
        write_json(self.path, self.content)


def read_record(folder: Path) -> dict[str, Any]:
    """The record of a run.

    Raises:
        InputError: The folder holds none.
    """
    path = Path(folder, FILE)
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} holds no {FILE} of a training run: {error}") from None


def fingerprint(*places: str, read: Iterable[str] = ()) -> dict[str, Any]:
    """What tells two data sets apart, in seconds also for a million pictures.

    Args:
        *places: Files, and folders with all below them; taken by name in the folder and size.
        read: Files taken by content, such as annotations.

    Returns:
        {"files": how many, "sha256": of all that}.
    """
    files = [
        f"{path.relative_to(place) if path != Path(place) else path.name} {path.stat().st_size}"
        for place in places
        for path in sorted(_files(Path(place)))
    ]
    lines = files + [sha256(path) for path in read]
    return {"files": len(files), "sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest()}


def _files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    for folder, _, names in os.walk(place, followlinks=True):
        yield from (Path(folder, name) for name in names)


def git_revision() -> str | None:
    """Commit of this package's checkout, "-dirty" behind it if files differ; None outside one."""
    here = Path(__file__)
    try:
        # An installed package may lie inside a checkout of something else.
        _git("ls-files", "--error-unmatch", here.name, cwd=here.parent)
        return _git(
            "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*", cwd=here.parent
        )
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str, cwd: Path) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=cwd, capture_output=True, text=True, check=True
    ).stdout.strip()


def _versions() -> dict[str, str]:
    packages = {d.metadata["Name"]: d.version for d in metadata.distributions()}
    return {"python": platform.python_version(), **dict(sorted(packages.items()))}


def _devices() -> list[str]:
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return gpus or [f"CPU, {torch.get_num_threads()} threads"]


def _peak_memory() -> dict[str, int]:
    unit = 1 if sys.platform == "darwin" else 1024
    peaks = {"process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit >> 20}
    if torch.cuda.is_available():
        peaks["gpu"] = torch.cuda.max_memory_allocated() >> 20
    return peaks
