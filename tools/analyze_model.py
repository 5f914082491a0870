"""Parameters, depth and FLOPs of every model, beside the paper's figures.

    python tools/analyze_model.py                        # Tables 2 to 5, as Markdown
    python tools/analyze_model.py --tables 3 --format csv
    python tools/analyze_model.py --check                # exit code 1 if a figure is not as known
    python tools/analyze_model.py --config detection/configs/mask_rcnn_srvit_s_t3.py --size 1024

Counted as the paper did: classification multiply-accumulates with attention; Mask R-CNN with
fvcore's counter, which does not see fused attention; UPerNet twice the multiply-accumulates. Tables
3, 4 and 5 hold 73 parameter and FLOPs figures; Table 2 repeats some of Table 3.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, nargs="+", choices=(2, 3, 4, 5), default=(2, 3, 4, 5))
    parser.add_argument("--format", choices=("markdown", "csv", "json"), default="markdown")
    parser.add_argument("--check", action="store_true", help="exit code 1 unless all is as known")
    parser.add_argument("--config", help="one model: a config file or a variant's name")
    parser.add_argument("--size", type=int, help="with --config: pixels of the square image")
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Count and print."""
    if args.config:
        from srvit_backbone.any_model.cost import analyze

        for key, value in analyze(args.config, args.size).items():
            print(f"{key}: {value:.2f}" if isinstance(value, float) else f"{key}: {value}")
        return
    from srvit_backbone.studies.paper_tables import PRINTERS, collect, summarize

    figures = collect(set(args.tables))
    PRINTERS[args.format](figures)
    summary, as_known = summarize(figures)
    print(summary, file=sys.stdout if args.format == "markdown" else sys.stderr)
    if args.check and not as_known:
        sys.exit(1)


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
