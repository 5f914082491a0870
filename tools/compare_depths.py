"""Draw how similar the depths of one or two models are: linear CKA over pictures (appendix B).

    python tools/compare_depths.py srvit_s_t3 --weights pretrained/srvit_s_t3.safetensors \\
        --input pictures/ --output depths.png
    python tools/compare_depths.py srvit_s_t3 --second srvit_deit_s --input pictures/ \\
        --output depths.png

Every application of a block is a depth. The numbers are written beside the picture, as .csv.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a variant's name, or a detector's or segmentor's config")
    parser.add_argument("--weights", default="", help="checkpoint of a model with this backbone")
    parser.add_argument("--second", help="another model; without it, the first with itself")
    parser.add_argument("--second-weights", default="")
    parser.add_argument("--input", nargs="+", required=True, help="pictures or folders of them")
    parser.add_argument("--size", type=int, default=224, help="pixels, of the centre square")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--output", type=Path, required=True, help=".png or .pdf")
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Compare, draw, write the numbers."""
    from srvit_backbone.analysis.cka import MIN_BATCH, compare, depth_labels
    from srvit_backbone.analysis.depth_similarity import draw, load_batches, write_csv
    from srvit_backbone.analysis.figures import check_figure_file, save_figure
    from srvit_backbone.any_model.backbone import open_backbone
    from srvit_backbone.errors import InputError
    from srvit_backbone.own_data.pictures import find_pictures

    check_figure_file(args.output)
    pictures = find_pictures(args.input)
    if len(pictures) < MIN_BATCH or args.batch < MIN_BATCH:
        raise InputError(
            f"{len(pictures)} pictures in batches of {args.batch}: CKA needs at least {MIN_BATCH}"
        )
    first = open_backbone(args.model, args.weights)
    second = open_backbone(args.second, args.second_weights) if args.second else first
    matrix = compare(first, second, load_batches(pictures, args.batch, args.size)).numpy()
    labels = depth_labels(first), depth_labels(second)
    compared = (
        (args.model, args.weights),
        (args.second or args.model, args.second_weights if args.second else args.weights),
    )
    names = tuple(f"{name}, {weights or 'RANDOM WEIGHTS'}" for name, weights in compared)
    save_figure(draw(matrix, labels, names), args.output)
    numbers = args.output.with_suffix(".csv")
    write_csv(matrix, labels, numbers)
    print(f"drawn in {args.output}, numbers in {numbers}")


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
