"""Turn the best weights of a pretraining run into the file that the configs load by default.

    python tools/publish_weights.py output/pretrain/srvit_s_t3
    python tools/publish_weights.py --check

Writes pretrained/<variant>.safetensors and records it (variant, recipe, resolution, top-1, sha256,
command, git revision) in pretrained/index.json and as a line of the table in pretrained/README.md.
--check compares the files there with the index.
"""

import argparse
import json
import os
from pathlib import Path

import timm
from omegaconf import OmegaConf
from safetensors.torch import save_file

from srvit_backbone.checkpoint import convert, read, unwrap
from srvit_backbone.errors import InputError, run_program
from srvit_backbone.files import sha256, write_json
from srvit_backbone.pretrain.run import best_weights
from srvit_backbone.run_record import read_record

# The last section of the folder's README, which is written anew.
HEADING = "## Files made here"
FOLDER = Path(__file__).parents[1] / "pretrained"


def publish(run: Path, folder: Path) -> dict[str, object]:
    """Convert a run's best weights; returns their record.

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
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{recipe.model}.safetensors"
    unfinished = target.with_suffix(".unfinished")
    save_file({k: v.contiguous() for k, v in converted.state.items()}, unfinished)
    os.replace(unfinished, target)
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


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", nargs="?", type=Path, help="output folder of a run")
    parser.add_argument("--check", action="store_true", help="compare files and records")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="default pretrained/")
    args = parser.parse_args()
    if args.check:
        check(args.folder)
        return
    if args.run is None:
        parser.error("name a run, or --check")
    record = publish(args.run, args.folder)
    index = {**load_index(args.folder), str(record["variant"]): record}
    write_json(args.folder / "index.json", index)
    page = args.folder / "README.md"
    before, heading, _ = (page.read_text() if page.is_file() else "").partition(HEADING)
    write(page, f"{before}{heading or HEADING}\n\n{table(index)}\n")
    print(f"{record['variant']}: top-1 {record['top1']}, sha256 {record['sha256']}")


if __name__ == "__main__":
    run_program(main)
