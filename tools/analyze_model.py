"""Parameters, depth and FLOPs of every model, beside the paper's figures.

    python tools/analyze_model.py                        # Tables 2 to 5, as Markdown
    python tools/analyze_model.py --tables 3 --format csv
    python tools/analyze_model.py --check                # exit code 1 if a figure is not as known
    python tools/analyze_model.py --config detection/configs/mask_rcnn_srvit_s_t3.py --size 1024

Counted as the paper did: classification multiply-accumulates with attention; Mask R-CNN with
fvcore's counter, which does not see fused attention; UPerNet twice the multiply-accumulates. Tables
3, 4 and 5 hold 73 parameter and FLOPs figures; Table 2 repeats some of Table 3.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import timm
import torch
from omegaconf import OmegaConf

from srvit_backbone import SRViT
from srvit_backbone.adapters.any_config import build_detector, build_segmentor
from srvit_backbone.analysis.cost import SIZES, Costed, count_params
from srvit_backbone.errors import run_program
from srvit_backbone.flops import count_gmacs

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "tools" / "paper_figures.yaml"
COCO_SIZE, ADE20K_SIZE = 1024, 512


@dataclass(frozen=True)
class Figure:
    """One cell of one of the paper's tables, and what we count for it."""

    table: int
    row: str
    column: str
    paper: float
    ours: float

    @property
    def match(self) -> bool:
        """Whether the two agree to the printed digit."""
        return round(self.ours, 1) == round(self.paper, 1)


# --- counting -----------------------------------------------------------------------


def classification_figures(paper: dict) -> Iterator[Figure]:
    """Tables 2 and 3."""
    for variant, printed in paper["classification"].items():
        say(variant)
        row = printed["label"]
        with torch.device("meta"):
            model = timm.create_model(variant)
        ours = {
            "Blocks": 2 + sum(model.unit_depths),
            "D_eff": model.effective_depth,
            "Dim": model.embed_dim,
            "Params": count_params(model),
            "FLOPs 224": count_gmacs(model, 224, 224),
            "FLOPs 384": count_gmacs(model, 384, 384),
        }
        figures = {
            "Blocks": printed["blocks"],
            "D_eff": printed["depth"],
            "Dim": printed["dim"],
            "Params": printed["params"],
            "FLOPs 224": printed["flops"][224],
            "FLOPs 384": printed["flops"][384],
        }
        if model.recursion_depth > 1:  # Table 2 has no baselines
            for column in ("Blocks", "D_eff", "Dim", "Params", "FLOPs 224"):
                yield Figure(2, row, column, figures[column], ours[column])
        for column in ("Params", "D_eff", "FLOPs 224", "FLOPs 384"):
            yield Figure(3, row, column, figures[column], ours[column])


def coco_figures(paper: dict) -> Iterator[Figure]:
    """The COCO half of Table 4."""
    from srvit_backbone.adapters.d2_flops import count_gflops

    for name, printed in paper["coco"].items():
        say(f"Mask R-CNN {name} at {COCO_SIZE} pixels")
        model = build_detector(ROOT / f"detection/configs/mask_rcnn_{name}.py")
        row = label(paper, name)
        yield Figure(4, row, "Params COCO", printed["params"], count_params(model))
        gflops = count_gflops(model, COCO_SIZE, COCO_SIZE)
        yield Figure(4, row, "FLOPs COCO", printed["flops"], gflops)


def ade20k_figures(paper: dict) -> Iterator[Figure]:
    """The ADE20K half of Table 4."""
    from srvit_backbone.adapters.mm_flops import count_gflops

    for name, printed in paper["ade20k"].items():
        say(f"UPerNet {name} at {ADE20K_SIZE} pixels")
        model = build_segmentor(ROOT / f"segmentation/configs/upernet_{name}.py", "meta")
        row = label(paper, name)
        yield Figure(4, row, "Params ADE20K", printed["params"], count_params(model))
        gflops, _ = count_gflops(model, ADE20K_SIZE, ADE20K_SIZE)
        yield Figure(4, row, "FLOPs ADE20K", printed["flops"], gflops)


def ablation_figures(paper: dict) -> Iterator[Figure]:
    """Table 5, but for its baseline, which repeats Table 3."""
    for printed in paper["ablation"]:
        say(printed["label"])
        with torch.device("meta"):
            model = SRViT(**printed["settings"])
        yield Figure(5, printed["label"], "Params", printed["params"], count_params(model))
        gmacs = count_gmacs(model, 224, 224)
        yield Figure(5, printed["label"], "FLOPs", printed["flops"], gmacs)


def label(paper: dict, name: str) -> str:
    """The paper's name of a model, from that of its config."""
    return paper["classification"][name if name.startswith("srvit") else f"srvit_{name}"]["label"]


def collect(tables: set[int]) -> list[Figure]:
    """All figures of the tables asked for, in the paper's order."""
    paper = OmegaConf.to_container(OmegaConf.load(FIGURES))
    figures: list[Figure] = []
    if tables & {2, 3}:
        figures += classification_figures(paper)
    if 4 in tables:
        figures += [*coco_figures(paper), *ade20k_figures(paper)]
    if 5 in tables:
        figures += ablation_figures(paper)
    say("")
    figures.sort(key=lambda figure: figure.table)
    return [figure for figure in figures if figure.table in tables]


# --- one model ----------------------------------------------------------------------


def analyze_one(name: str, size: int | None) -> dict[str, float | str]:
    """Parameters (millions) and FLOPs (1e9) of a variant, a detector's or a segmentor's config."""
    model = Costed.of(name)
    size = size or SIZES[model.kind]
    params = count_params(model.build("meta"))
    return {"model": name, "size": size, "params": params, **model.flops(size)}


# --- printing -----------------------------------------------------------------------


def print_markdown(figures: list[Figure]) -> None:
    """One table a paper's table: ours / paper, and a mark where they differ."""
    for table in sorted({figure.table for figure in figures}):
        cells = {(f.row, f.column): f for f in figures if f.table == table}
        columns = list(dict.fromkeys(column for _, column in cells))
        print(f"Table {table} (ours / paper, params in millions, FLOPs in 1e9)\n")
        print(f"| model | {' | '.join(columns)} |")
        print(f"|---|{'---|' * len(columns)}")
        for row in dict.fromkeys(row for row, _ in cells):
            texts = [_cell(cells.get((row, column))) for column in columns]
            print(f"| {row} | {' | '.join(texts)} |")
        print()


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    digits = ".1f" if isinstance(figure.paper, float) else "g"
    ours, paper = (f"{value:{digits}}" for value in (figure.ours, figure.paper))
    return f"{ours} / {paper} {'✓' if figure.match else '✗'}"


def print_csv(figures: list[Figure]) -> None:
    """One line a figure."""
    writer = csv.writer(sys.stdout)
    writer.writerow(["table", "row", "column", "paper", "ours", "match"])
    for f in figures:
        writer.writerow([f.table, f.row, f.column, f.paper, round(f.ours, 4), f.match])


def print_json(figures: list[Figure]) -> None:
    """A list of figures."""
    print(json.dumps([{**asdict(figure), "match": figure.match} for figure in figures], indent=1))


PRINTERS = {"markdown": print_markdown, "csv": print_csv, "json": print_json}


def summarize(figures: list[Figure]) -> tuple[str, bool]:
    """What matches and why the rest does not, and whether that is as known."""
    counted = [f for f in figures if f.table > 2 and f.column.startswith(("Params", "FLOPs"))]
    known = {
        tuple(entry["figure"]): entry
        for entry in OmegaConf.to_container(OmegaConf.load(FIGURES))["explained"]
    }
    lines = [f"{sum(f.match for f in counted)} of {len(counted)} figures match to the digit."]
    as_known = True
    for figure in figures:
        entry = known.get((figure.table, figure.row, figure.column))
        if entry and round(figure.ours, 1) == entry["ours"]:
            reason = entry["reason"]
        elif figure.match:
            continue
        else:
            reason, as_known = "NOT EXPLAINED: has a model changed?", False
        lines.append(
            f"  Table {figure.table}, {figure.row}, {figure.column}: ours {figure.ours:.1f}, "
            f"paper {figure.paper}: {reason}"
        )
    return "\n".join(lines), as_known


def say(text: str) -> None:
    """Progress, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, nargs="+", choices=(2, 3, 4, 5), default=(2, 3, 4, 5))
    parser.add_argument("--format", choices=PRINTERS, default="markdown")
    parser.add_argument("--check", action="store_true", help="exit code 1 unless all is as known")
    parser.add_argument("--config", help="one model: a config file or a variant's name")
    parser.add_argument("--size", type=int, help="with --config: pixels of the square image")
    args = parser.parse_args()
    if args.config:
        for key, value in analyze_one(args.config, args.size).items():
            print(f"{key}: {value:.2f}" if isinstance(value, float) else f"{key}: {value}")
        return
    figures = collect(set(args.tables))
    PRINTERS[args.format](figures)
    summary, as_known = summarize(figures)
    print(summary, file=sys.stdout if args.format == "markdown" else sys.stderr)
    if args.check and not as_known:
        sys.exit(1)


if __name__ == "__main__":
    run_program(main)
