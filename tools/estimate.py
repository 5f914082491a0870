"""Parameters, FLOPs and memory of a run before it is started.

    python tools/estimate.py --config detection/configs/mask_rcnn_srvit_s_t3.py --batch 2
    python tools/estimate.py --config srvit_s_t3 --size 384 --batch 64 --amp bfloat16
    python tools/estimate.py --measure      # three real training steps beside their estimates

--batch is the images of one process at a time. Training is with AdamW; its memory is given for each
checkpointing policy (store all activations, keep attention's outputs, recompute all).
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--config", help="a config file of either framework, or a variant")
    parser.add_argument("--size", type=int, help="pixels of the square image; default the recipe's")
    parser.add_argument("--batch", type=int, default=1, help="images at a time, default 1")
    parser.add_argument("--amp", choices=("none", "bfloat16", "float16"), default="none")
    parser.add_argument("--measure", action="store_true", help="compare with real steps")
    args = parser.parse_args(arguments)
    if not args.measure and not args.config:
        parser.error("give --config or --measure")
    return args


def main(args: Namespace) -> None:
    """Estimate, or measure."""
    from srvit_backbone.any_model.estimate import estimate, measure

    if args.measure:
        measure()
    else:
        estimate(args.config, args.size, args.batch, args.amp)


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
