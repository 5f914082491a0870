"""The best weights of a run as the file that the configs load, its record and its table."""

import json
import os
from pathlib import Path

import timm
from omegaconf import OmegaConf

from srvit_backbone.checkpoint import convert, read, unwrap
from srvit_backbone.checkpoint.file import save_whole
from srvit_backbone.errors import InputError
from srvit_backbone.files import sha256, write_json
from srvit_backbone.pretrain.trainer import best_weights
from srvit_backbone.training.run_record import read_record

# The last section of the folder's README, which is written anew.
HEADING = "## Files made here"


def publish(run: Path, folder: Path) -> dict[str, object]:
    """Convert a run's best weights into the folder, with its index and page; returns their record.

    Raises:
        InputError: The folder holds no finished run.
    """
    record = _convert(run, folder)
    index = {**load_index(folder), str(record["variant"]): record}
    write_json(folder / "index.json", index)
    page = folder / "README.md"
    before, heading, _ = (page.read_text() if page.is_file() else "").partition(HEADING)
    write(page, f"{before}{heading or HEADING}\n\n{table(index)}\n")
    return record


def _convert(run: Path, folder: Path) -> dict[str, object]:
    """Write a run's best weights as safetensors; returns their record.

    Raises:
        InputError: The folder holds no finished run.
    """
    weights = best_weights(run)
    session = read_record(run)["sessions"][0]
    recipe = OmegaConf.load(run / "recipe.yaml")
    content = read(weights)
    state, key = unwrap(content, use_ema=True)
    model = timm.create_model(
        recipe.model,
        img_size=recipe.img_size,
        num_classes=state["head.weight"].shape[0],
        distilled=recipe.distilled,
    )
    converted = convert(state, model, source=f"{weights}{key}")
    target = folder / f"{recipe.model}.safetensors"
    save_whole(converted.state, target)
    return {
        "variant": recipe.model,
        "resolution": recipe.img_size,
        "data": Path(recipe.data).name,
        "top1": round(content["best"], 2),
        "sha256": sha256(target),
        "recipe": OmegaConf.to_container(recipe),
        "command": session["command"],
        "revision": session["git_revision"] or "unknown",
    }


def table(index: dict[str, dict]) -> str:
    """The records as a Markdown table."""
    lines = [
        "| file | data | resolution | top-1 | command | revision | sha256 |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{variant}.safetensors` | {record['data']} | {record['resolution']} | "
        f"{record['top1']} | `{record['command']}` | {record['revision'][:10]} | "
        f"`{record['sha256'][:16]}` |"
        for variant, record in index.items()
    ]
    return "\n".join(lines)


def write(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text)
    os.replace(unfinished, path)


def load_index(folder: Path) -> dict[str, dict]:
    """The records, by variant."""
    path = folder / "index.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def check(folder: Path) -> None:
    """Compare all files with their records.

    Raises:
        InputError: One is missing or another than recorded.
    """
    for variant, record in load_index(folder).items():
        path = folder / f"{variant}.safetensors"
        if not path.is_file():
            raise InputError(f"{path} is in the index, but not there")
        if sha256(path) != record["sha256"]:
            raise InputError(f"{path} is not the file that was recorded: its sha256 differs")
        print(f"{path}: as recorded")
