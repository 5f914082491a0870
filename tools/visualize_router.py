"""Draw the token-wise mixture weights of a model on pictures (Fig. 4 of the paper).

    python tools/visualize_router.py srvit_s_t3 --weights pretrained/srvit_s_t3.safetensors \\
        --input photo.jpg --output router.png
    python tools/visualize_router.py output/demo/config.yaml --unit all \\
        --weights output/demo/model_final.pth --input datasets/coins/coins.png --output router.pdf

One map a recursion step in its own colour, and all of them blended. The numbers are written beside
the picture, as .npz with one (T, H, W) array a picture and unit.
"""

import argparse
from pathlib import Path

import numpy as np

from srvit_backbone.analysis.figures import check_figure_file, save_figure
from srvit_backbone.analysis.models import open_backbone
from srvit_backbone.analysis.routing import draw_maps, mixture_maps
from srvit_backbone.errors import InputError, run_program
from srvit_backbone.pictures import find_pictures, read_image


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a variant's name, or a detector's or segmentor's config")
    parser.add_argument("--weights", default="", help="checkpoint of a model with this backbone")
    parser.add_argument("--input", nargs="+", required=True, help="pictures or folders of them")
    parser.add_argument("--unit", default="last", help="number of a unit from 1, last, or all")
    parser.add_argument("--output", type=Path, required=True, help=".png or .pdf")
    args = parser.parse_args()
    check_figure_file(args.output)
    pictures = find_pictures(args.input)
    model = open_backbone(args.model, args.weights)
    units = len(model.unit_depths)
    known = {"all": range(units), "last": [units - 1]}
    known.update({str(unit + 1): [unit] for unit in range(units)})
    if args.unit not in known:
        raise InputError(f"--unit {args.unit}: must be 1 to {units}, last or all")
    images, maps = {}, {}
    for index, path in enumerate(pictures, 1):
        images[path.name] = read_image(str(path))
        try:
            found = mixture_maps(model, images[path.name])
        except ValueError as error:
            raise InputError(str(error)) from None
        maps[path.name] = {f"unit {u + 1} of {units}": found[u] for u in known[args.unit]}
        print(f"{index} of {len(pictures)}: {path}")
    title = f"Mixture weights of {args.model}, {args.weights}"
    if not args.weights:
        title = f"Mixture weights of {args.model}. NO CHECKPOINT: these weights are random"
    figure = draw_maps(images, maps, title)
    save_figure(figure, args.output)
    numbers = args.output.with_suffix(".npz")
    np.savez_compressed(
        numbers,
        **{f"{name}/{unit}": m for name, found in maps.items() for unit, m in found.items()},
    )
    print(f"drawn in {args.output}, numbers in {numbers}")


if __name__ == "__main__":
    run_program(main)
