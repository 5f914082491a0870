"""Train or evaluate a detector with an SR-ViT backbone (Detectron2 LazyConfig).

    python tools/train_net.py --config-file detection/configs/mask_rcnn_srvit_s_t3.py --num-gpus 8
    python tools/train_net.py --config-file output/srvit_s_t3/config.yaml --eval-only \\
        train.init_checkpoint=output/srvit_s_t3/model_best.pth

Own data in COCO format, classes read from the json:

    python tools/train_net.py --config-file detection/configs/mask_rcnn_srvit_s_t3.py \\
        own_data.train_json=train.json own_data.train_images=images/train \\
        own_data.val_json=val.json own_data.val_images=images/val

On the hardware at hand; what is changed in the recipe is printed:

    --batch 8          images a step: learning rate and schedule follow
    --memory 12GB      of a GPU: the batch is cut into parts, activations are recomputed if need be

A config has model, dataloader, optimizer, lr_multiplier, train and own_data, as in
detection/configs/common/mask_rcnn_srvit.py. Any key can be overridden: train.max_iter=90000.
"""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--config-file", required=True, help="a LazyConfig, or one saved by a run")
    parser.add_argument("--resume", action="store_true", help="go on with the run in output_dir")
    parser.add_argument("--eval-only", action="store_true", help="evaluate only")
    parser.add_argument("--num-gpus", type=int, default=1, help="processes on this machine")
    parser.add_argument("--num-machines", type=int, default=1)
    parser.add_argument("--machine-rank", type=int, default=0, help="of this machine")
    parser.add_argument("--dist-url", default="auto", help="where several machines meet")
    parser.add_argument("--batch", type=int, help="images a step, instead of the recipe's")
    parser.add_argument("--memory", default="", help="of a process, e.g. 12GB")
    parser.add_argument("opts", nargs="*", help="config overrides, key=value")
    return parser.parse_intermixed_args(arguments)


def main(args: Namespace) -> None:
    """Start the processes of the run."""
    from srvit_backbone.detectron2.run import run

    run(args)


if __name__ == "__main__":
    arguments = parse()
    from srvit_backbone.errors import run_program

    run_program(main, arguments)
