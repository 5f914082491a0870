"""Draw the charts of the README from the paper's figures and a benchmark's results.

    python tools/benchmark.py quick --output docs/benchmark.json
    python tools/draw_charts.py --benchmark docs/benchmark.json --output docs

Writes accuracy.png (the paper's), speed.png and memory.png (measured).
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", type=Path, default=Path("docs/benchmark.json"))
    parser.add_argument("--output", type=Path, default=Path("docs"))
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Draw."""
    from srvit_backbone.studies.charts import draw_all

    draw_all(args.benchmark, args.output)


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
