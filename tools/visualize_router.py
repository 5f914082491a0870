"""Draw the token-wise mixture weights of a model on pictures (Fig. 4 of the paper).

    python tools/visualize_router.py srvit_s_t3 --weights pretrained/srvit_s_t3.safetensors \\
        --input photo.jpg --output router.png
    python tools/visualize_router.py output/demo/config.yaml --unit all \\
        --weights output/demo/model_final.pth --input datasets/coins/coins.png --output router.pdf

One map a recursion step in its own colour, and all of them blended. The numbers are written beside
the picture, as .npz with one (T, H, W) array a picture and unit.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a variant's name, or a detector's or segmentor's config")
    parser.add_argument("--weights", default="", help="checkpoint of a model with this backbone")
    parser.add_argument("--input", nargs="+", required=True, help="pictures or folders of them")
    parser.add_argument("--unit", default="last", help="number of a unit from 1, last, or all")
    parser.add_argument("--output", type=Path, required=True, help=".png or .pdf")
    return parser.parse_args(arguments)


def main(args: Namespace) -> None:
    """Draw, write the numbers."""
    import numpy as np

    from srvit_backbone.analysis.figures import check_figure_file, save_figure
    from srvit_backbone.analysis.routing import chosen_units, draw_maps, mixture_maps
    from srvit_backbone.any_model.backbone import open_backbone
    from srvit_backbone.own_data.pictures import find_pictures, read_image

    check_figure_file(args.output)
    pictures = find_pictures(args.input)
    model = open_backbone(args.model, args.weights)
    units = chosen_units(model, args.unit)
    images, maps = {}, {}
    for index, path in enumerate(pictures, 1):
        images[path.name] = read_image(str(path))
        found = mixture_maps(model, images[path.name])
        maps[path.name] = {f"unit {u + 1} of {len(found)}": found[u] for u in units}
        print(f"{index} of {len(pictures)}: {path}")
    title = f"Mixture weights of {args.model}, {args.weights}"
    if not args.weights:
        title = f"Mixture weights of {args.model}. NO CHECKPOINT: these weights are random"
    save_figure(draw_maps(images, maps, title), args.output)
    numbers = args.output.with_suffix(".npz")
    arrays = {f"{name}/{unit}": m for name, found in maps.items() for unit, m in found.items()}
    np.savez_compressed(numbers, **arrays)
    print(f"drawn in {args.output}, numbers in {numbers}")


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
