"""Accuracy against FLOPs of a trained classifier that runs only the first steps of its recursion.

    python tools/fewer_steps.py output/pretrain/srvit_nano_t3

The mixture weights of the steps that are left are renormalised. The paper does not claim that this
works: the table says what it gives for a run of tools/train_imagenet.py, on its validation images.
"""

import argparse
from pathlib import Path

import torch.distributed as dist
from omegaconf import OmegaConf
from torch import nn
from train_imagenet import build_model

from srvit_backbone.errors import run_program
from srvit_backbone.flops import count_gmacs
from srvit_backbone.pretrain.data import build_data
from srvit_backbone.pretrain.processes import start_process_group
from srvit_backbone.pretrain.recipe import plan_batch
from srvit_backbone.pretrain.run import Run, best_weights


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="output folder of a run")
    parser.add_argument("--data", help="another place of its data")
    args = parser.parse_args()
    weights = best_weights(args.run)
    recipe = OmegaConf.load(args.run / "recipe.yaml")
    recipe.init, recipe.data = str(weights), args.data or recipe.data
    device = start_process_group()
    try:
        plan = plan_batch(recipe, dist.get_world_size())
        data = build_data(recipe, plan.images, device, train=False)
        model = build_model(recipe, data.num_classes).to(device)
        run = Run(recipe, model, nn.Identity(), data, plan, args.run)
        print("| steps | depth | GMACs | top-1, % | top-5, % |\n|---|---|---|---|---|")
        for steps in range(1, model.recursion_depth + 1):
            model.set_steps(steps)
            top1, top5 = run.evaluate(model)
            gmacs = count_gmacs(model, recipe.img_size, recipe.img_size)
            print(f"| {steps} | {model.effective_depth} | {gmacs:.3f} | {top1:.2f} | {top5:.2f} |")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    run_program(main)
