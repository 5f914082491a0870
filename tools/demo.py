"""Draw what a trained model finds on pictures: objects of a detector, classes of a segmentor.

    python tools/demo.py --config-file output/demo/config.yaml \\
        --weights output/demo/model_best.pth --input datasets/coins/coins.png \\
        --output output/pictures
    python tools/demo.py --config-file output/demo_seg/upernet_srvit_demo.py \\
        --weights output/demo_seg/iter_1000.pth --input my_pictures/ --output output/pictures

Takes configs of detection/ and segmentation/, best as a run has saved them.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--config-file", required=True, help="a config, best the run's own")
    parser.add_argument("--weights", required=True, help="checkpoint of the whole model")
    parser.add_argument("--input", nargs="+", required=True, help="pictures or folders of them")
    parser.add_argument(
        "--output", type=Path, required=True, help="folder, or a .png for one picture"
    )
    parser.add_argument("--threshold", type=float, default=0.5, help="lowest score shown")
    parser.add_argument(
        "--overlap",
        type=float,
        default=0.7,
        help="of boxes that share more than this, of whatever class, only the best is shown; "
        "1 shows all",
    )
    parser.add_argument("opts", nargs="*", help="config overrides, key=value")
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Draw on all pictures."""
    from srvit_backbone.any_model.predict import draw_pictures, open_drawing
    from srvit_backbone.own_data.pictures import find_pictures

    pictures = find_pictures(args.input)
    draw = open_drawing(args.config_file, args.weights, args.opts, args.threshold, args.overlap)
    draw_pictures(pictures, draw, args.output)


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
