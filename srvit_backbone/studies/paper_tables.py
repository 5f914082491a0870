"""Parameters, depth and FLOPs of every model, beside the paper's Tables 2 to 5."""

import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import timm
import torch

from srvit_backbone import SRViT
from srvit_backbone.analysis.flops import count_gmacs
from srvit_backbone.any_model.cost import count_params
from srvit_backbone.any_model.open import build_detector, build_segmentor, config_folder
from srvit_backbone.studies.paper_figures import paper_figures

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
    from srvit_backbone.detectron2.flops import count_gflops

    for name, printed in paper["coco"].items():
        say(f"Mask R-CNN {name} at {COCO_SIZE} pixels")
        model = build_detector(config_folder("detection") / f"mask_rcnn_{name}.py")
        row = label(paper, name)
        yield Figure(4, row, "Params COCO", printed["params"], count_params(model))
        gflops = count_gflops(model, COCO_SIZE, COCO_SIZE)
        yield Figure(4, row, "FLOPs COCO", printed["flops"], gflops)


def ade20k_figures(paper: dict) -> Iterator[Figure]:
    """The ADE20K half of Table 4."""
    from srvit_backbone.openmmlab.flops import count_gflops

    for name, printed in paper["ade20k"].items():
        say(f"UPerNet {name} at {ADE20K_SIZE} pixels")
        model = build_segmentor(config_folder("segmentation") / f"upernet_{name}.py", "meta")
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
    paper = paper_figures()
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
    known = {tuple(entry["figure"]): entry for entry in paper_figures()["explained"]}
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
