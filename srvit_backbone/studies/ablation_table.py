"""Scores of an ablation's cells as a table, and whether they differ by more than their seeds."""

import statistics
from typing import Any

from scipy import stats


def separation(scores: dict[str, list[float]]) -> str:
    """Whether cells differ by more than seeds do."""
    if min(len(values) for values in scores.values()) < 2 or len(scores) < 2:
        return "Two cells and two seeds are needed to tell cells apart from seeds."
    test = stats.f_oneway(*scores.values())
    spread = statistics.mean(statistics.stdev(values) for values in scores.values())
    between = statistics.stdev(statistics.mean(values) for values in scores.values())
    verdict = "separate" if test.pvalue < 0.01 else "do NOT separate"
    return (
        f"The cells {verdict}: their means differ with a standard deviation of {between:.2f}, "
        f"the seeds of a cell with {spread:.2f}; F = {test.statistic:.1f}, p = {test.pvalue:.1e}."
    )


def table(cells: list[dict[str, Any]], scores: dict[str, list[float]], unit: str) -> str:
    """Markdown: a line a cell, ours beside the paper's."""
    base = next(iter(scores))
    paper_base = next(cell["top1"] for cell in cells if cell["label"] == base)
    lines = [
        f"| | {unit}, mean ± std | to {base} | paper, ImageNet Top-1 | to {base} |",
        "|---|---|---|---|---|",
    ]
    for cell in cells:
        values = scores[cell["label"]]
        mean = statistics.mean(values)
        deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
        paper = "not printed" if cell["top1"] is None else f"{cell['top1']:.2f}"
        known = None not in (cell["top1"], paper_base)
        to_base = f"{cell['top1'] - paper_base:+.2f}" if known else ""
        lines.append(
            f"| {cell['label']} | {mean:.1f}{deviation} | "
            f"{mean - statistics.mean(scores[base]):+.1f} | {paper} | {to_base} |"
        )
    return "\n".join(lines)
