"""The charts of the README: the paper's accuracies, measured speed and memory."""

import json
from pathlib import Path

from srvit_backbone.analysis.figures import plt, save_figure
from srvit_backbone.errors import InputError
from srvit_backbone.studies.paper_figures import paper_figures

# One colour and marker a family, told apart in grey too.
FAMILIES = {
    "srvit_deit": ("DeiT", "#7f7f7f", "s"),
    "srvit_t": ("SR-ViT-T", "#f0a202", "^"),
    "srvit_s": ("SR-ViT-S", "#1f77b4", "o"),
    "srvit_b": ("SR-ViT-B", "#3b1f2b", "D"),
}


def draw_all(benchmark: Path, folder: Path) -> None:
    """Draw accuracy.png (the paper's), speed.png and memory.png (measured).

    Args:
        benchmark: Results of tools/benchmark.py.
        folder: Of the charts.

    Raises:
        InputError: There are no results, or not of all suites.
    """
    if not benchmark.is_file():
        raise InputError(f"no file {benchmark}: tools/benchmark.py quick --output writes it")
    results = json.loads(benchmark.read_text())
    missing = {"throughput", "memory"} - set(results)
    if missing:
        raise InputError(f"{benchmark} lacks the suites {', '.join(sorted(missing))}")
    paper = paper_figures()["classification"]
    draw_accuracy(paper, folder / "accuracy.png")
    draw_speed(results, paper, folder / "speed.png")
    draw_memory(results, folder / "memory.png")


def draw_accuracy(paper: dict, target: Path) -> None:
    """Top-1 at 224 against parameters and against FLOPs, a line a family, as printed in Table 3."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    quantities = (("params", "parameters (millions)"), ("flops", "FLOPs at 224 (1e9)"))
    for axis, (key, title) in zip(axes, quantities, strict=True):
        for family, (name, colour, marker) in FAMILIES.items():
            rows = [row for variant, row in paper.items() if variant.startswith(family)]
            x = [row[key][224] if key == "flops" else row[key] for row in rows]
            y = [row["top1"][224] for row in rows]
            axis.plot(x, y, color=colour, marker=marker, label=name)
            for index, (row, *at) in enumerate(zip(rows, x, y, strict=True)):
                steps = row["label"].partition("(")[2].rstrip(")") or row["label"]
                # Labels of neighbours above and below in turn: S has T = 3 and T = 4 on one spot.
                place = (5, 5) if index % 2 == 0 else (5, -11)
                axis.annotate(steps, at, place, textcoords="offset points", fontsize=8)
        axis.set_xlabel(title)
        axis.margins(0.1)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("ImageNet-1K top-1 (%)")
    axes[0].legend(loc="lower right")
    figure.suptitle("Accuracy as printed in the paper (Table 3), not trained here", fontsize=10)
    _save(figure, target)


def draw_speed(results: dict, paper: dict, target: Path) -> None:
    """Images/s relative to DeiT-S: measured, the paper's, and what FLOPs alone would give."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for axis, size in zip(axes, (224, 384), strict=True):
        names = [key for key in results["throughput"] if key.endswith(str(size))]
        rows = [results["throughput"][name] for name in names]
        middles = [row["ours"][0] for row in rows]
        errors = [
            [row["ours"][0] - row["ours"][1] for row in rows],
            [row["ours"][2] - row["ours"][0] for row in rows],
        ]
        places = range(len(rows))
        axis.bar(places, middles, yerr=errors, color="#8fb8de", label="measured (range)")
        for key, marker, text in (("paper", "o", "paper"), ("flops", "_", "1 / FLOPs")):
            values = [row[key] for row in rows]
            axis.plot(places, values, marker, color="black", markersize=9, label=text)
        labels = [paper[name.split()[0]]["label"].removeprefix("SR-ViT-") for name in names]
        axis.set_xticks(list(places), labels, rotation=30, ha="right")
        axis.set_title(f"{size} pixels", fontsize=10)
    axes[0].set_ylabel("images/s relative to DeiT-S")
    axes[0].legend()
    figure.suptitle(f"{results['date']}, {results['machine']}", fontsize=9)
    _save(figure, target)


def draw_memory(results: dict, target: Path) -> None:
    """Peak memory and time of a training step at 1024 pixels, by checkpointing policy."""
    names = list(results["memory"])
    figure, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
    sizes = [results["memory"][name]["mib"] for name in names]
    bars = axis.barh(names, sizes, color="#8fb8de")
    texts = [
        f"{results['memory'][name]['ratio']:.2f} of DeiT-S, time x {row[0]:.2f}"
        for name, row in ((name, results["memory"][name]["time"]) for name in names)
    ]
    axis.bar_label(bars, texts, padding=4, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(0, 1.45 * max(sizes))
    axis.set_xlabel("peak memory (MiB) of a training step, 1024 pixels, batch 1")
    figure.suptitle(f"{results['date']}, {results['machine']}", fontsize=9)
    _save(figure, target)


def _save(figure: plt.Figure, target: Path) -> None:
    save_figure(figure, target)
    print(f"written {target}")
