"""What two training runs differ in, and their curves on one picture.

    python tools/compare_runs.py output/srvit_s_t3 output/srvit_s_t3_batch_4 --output compared.png

Takes the output folders of tools/train_net.py, tools/train_imagenet.py and mim train, two of one
kind. Settings that are equal are left out; the curves are drawn over the images seen. --curves
names others than the loss, the rate and the scores, as TensorBoard shows them.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs=2, type=Path, metavar="RUN", help="output folder of a run")
    parser.add_argument("--output", type=Path, default=Path("compared.png"), help=".png or .pdf")
    parser.add_argument("--curves", nargs="+", default=[], metavar="NAME", help="what to draw")
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Print the differences, draw the curves."""
    from srvit_backbone.analysis.figures import check_figure_file
    from srvit_backbone.studies.compare_runs import chosen_curves, differences, draw, read_curves
    from srvit_backbone.training.run_record import read_record

    check_figure_file(args.output)
    records = [read_record(run) for run in args.runs]
    rows = differences(*records)
    print(f"A: {args.runs[0]}\nB: {args.runs[1]}")
    width = max((len(key) for key, _, _ in rows), default=0)
    for key, first, second in rows:
        print(f"  {key:{width}}  {first} -> {second}")
    if not rows:
        print("  no difference")
    curves = [read_curves(run) for run in args.runs]
    wanted = chosen_curves(curves, args.curves)
    steps = [record["images_a_step"] for record in records]
    draw(curves, steps, [str(run) for run in args.runs], wanted, args.output)
    print(f"Curves: {args.output}")


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
