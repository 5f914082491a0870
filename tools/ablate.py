"""Train the paper's ablations (Figure 3, Tables 5 and 6) at small scale, on real data.

    python tools/ablate.py --suite digits --seeds 3   # cluttered handwritten digits, few labels
    python tools/ablate.py --suite coins --seeds 2    # box AP of the demo's detector

Every cell and seed leaves a file in --output; a run that was stopped goes on with those missing.
The table has the mean and the spread over seeds beside the paper's Top-1 on ImageNet, and whether
the cells differ by more than their seeds do (one-way analysis of variance). --blind prints only
that: so a task is chosen without seeing which method wins.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=("digits", "coins"), required=True)
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each cell")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--cells", nargs="+", help="labels of some cells; default all")
    parser.add_argument("--processes", type=int, help="at a time; default digits: CPUs, coins: 1")
    parser.add_argument("--output", type=Path, default=Path("output/ablation"))
    parser.add_argument("--blind", action="store_true", help="print the separation only")
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Train what is missing, print the table."""
    from srvit_backbone.studies.ablation import SUITES, ablate, chosen_cells
    from srvit_backbone.studies.ablation_table import separation, table

    cells = chosen_cells(args.cells)
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    folder = args.output / args.suite
    scores = ablate(args.suite, cells, seeds, folder, args.processes)
    verdict = separation(scores)
    if args.blind:
        print(verdict)
        return
    text = f"{table(cells, scores, SUITES[args.suite][1])}\n\n{verdict}\n"
    (folder / "table.md").write_text(text, encoding="utf-8")
    print(f"\n{text}\nwritten to {folder / 'table.md'}")


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
