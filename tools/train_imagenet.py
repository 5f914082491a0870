"""Pretrain, fine-tune or distil an SR-ViT classifier on timm's parts.

    python tools/train_imagenet.py srvit_s_t3 data=/data/imagenet
    torchrun --nproc-per-node 8 tools/train_imagenet.py srvit_s_t3 data=/data/imagenet
    torchrun ... tools/train_imagenet.py srvit_s_t3 finetune_384 \\
        init=output/pretrain/srvit_s_t3/best.pth
    torchrun ... tools/train_imagenet.py srvit_s_t3 distill data=/data/imagenet
    python tools/train_imagenet.py digits

On the hardware at hand: --batch 256 (images a step; the learning rate follows), --memory 12GB (of a
GPU: the batch is cut into parts, activations are recomputed if need be). What changes is printed.

Names are recipes of pretrained/recipes/ or yaml files, merged in order over DeiT's recipe;
key=value sets any key. --resume continues after the last finished epoch.
"""

import argparse
import json
import logging
import sys
from functools import partial
from pathlib import Path
from typing import Any

import timm
import torch
import torch.distributed as dist
from omegaconf import DictConfig, OmegaConf
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import nn

from srvit_backbone import load_checkpoint
from srvit_backbone.errors import InputError, run_program
from srvit_backbone.pretrain.data import build_data
from srvit_backbone.pretrain.distill import HardDistillation, base_loss, build_teacher
from srvit_backbone.pretrain.fit import fit_recipe
from srvit_backbone.pretrain.processes import start_process_group
from srvit_backbone.pretrain.recipe import load_recipe, plan_batch
from srvit_backbone.pretrain.run import Run
from srvit_backbone.run_record import RunRecord, fingerprint

RECIPES = Path(__file__).parents[1] / "pretrained" / "recipes"
logger = logging.getLogger("srvit_backbone.train_imagenet")


def main() -> None:
    """Command line; one process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", nargs="+", help="recipes and key=value overrides")
    parser.add_argument("--resume", action="store_true", help="continue the run in output")
    parser.add_argument("--batch", type=int, help="images a step, instead of the recipe's")
    parser.add_argument("--memory", default="", help="of a process, e.g. 12GB")
    parser.add_argument("--eval-only", action="store_true", help="top-1 and top-5 of init=FILE")
    args = parser.parse_intermixed_args()
    names = [value for value in args.recipe if "=" not in value]
    recipe = load_recipe(RECIPES, names, [value for value in args.recipe if "=" in value])

    device = start_process_group()
    try:
        if args.batch or args.memory:
            build = partial(create_model, recipe)
            table = fit_recipe(recipe, build, args.batch, args.memory, dist.get_world_size())
            if dist.get_rank() == 0:
                print(table)
        folder = prepare_output(recipe, args)
        plan = plan_batch(recipe, dist.get_world_size())
        logger.info("%s, on %s", plan, device)
        data = build_data(recipe, plan.images, device, train=not args.eval_only)
        torch.manual_seed(recipe.seed)
        model = build_model(recipe, data.num_classes).to(device)
        loss = build_loss(recipe, data.mixup is not None, data.num_classes).to(device)
        run = Run(recipe, model, loss, data, plan, folder)
        if args.eval_only:
            top1, top5 = run.evaluate(model)
            if dist.get_rank() == 0:
                print(json.dumps({"top1": round(top1, 3), "top5": round(top5, 3)}))
            return
        resuming = args.resume and (folder / "last.pth").exists()
        if resuming:
            run.resume()
        record = start_record(recipe, folder, run, resuming) if dist.get_rank() == 0 else None
        run.train()
        if record:
            record.finish({"best top-1": run.best, **run.rows[-1]})
        logger.info("best top-1 %.2f, %s", run.best, folder / "best.pth")
    finally:
        dist.destroy_process_group()


def prepare_output(recipe: DictConfig, args: argparse.Namespace) -> Path:
    """Create the output folder, start the log, save the resolved recipe.

    Raises:
        InputError: It cannot be written, or holds a run that this would overwrite or change.
    """
    folder = Path(recipe.output)
    resolved = OmegaConf.to_container(recipe, resolve=True)
    main = dist.get_rank() == 0
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stdout)] if main else []
    if not args.eval_only:
        saved = folder / "recipe.yaml"
        if (folder / "last.pth").exists():
            if not args.resume:
                raise InputError(
                    f"{folder} holds a run: --resume continues it, output=... starts another"
                )
            old = OmegaConf.to_container(OmegaConf.load(saved))
            free = ("num_workers", "log_interval", "data")
            changed = [k for k in resolved if resolved[k] != old.get(k) and k not in free]
            if changed:
                was = "; ".join(f"{k} was {old.get(k)}, is {resolved[k]}" for k in changed)
                raise InputError(f"{folder} holds a run of another recipe ({was})")
        if main:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                OmegaConf.save(OmegaConf.create(resolved), saved)
                handlers.append(logging.FileHandler(folder / "log.txt"))
            except OSError as error:
                raise InputError(f"cannot write to output={folder}: {error}") from None
    logging.basicConfig(
        format="%(asctime)s %(message)s", datefmt="%m-%d %H:%M:%S", handlers=handlers
    )
    logging.getLogger("srvit_backbone").setLevel(logging.INFO if main else logging.ERROR)
    return folder


def start_record(recipe: DictConfig, folder: Path, run: Run, resuming: bool) -> RunRecord:
    """Begin the run's run.json."""

    def fingerprint_of(loader: Any) -> dict[str, Any]:
        root = getattr(loader.dataset.reader, "root", None)  # none where timm fetches the data
        return fingerprint(*([root] if root else []))

    return RunRecord(
        folder,
        config=OmegaConf.to_container(recipe, resolve=True),
        seed=recipe.seed,
        images_a_step=run.steps * recipe.batch_size,  # the curves' steps are epochs
        data={"train": fingerprint_of(run.data.train), "val": fingerprint_of(run.data.val)},
        weights=recipe.init,
        processes=dist.get_world_size(),
        resumed=resuming,
    )


def create_model(recipe: DictConfig, num_classes: int = 1000) -> nn.Module:
    """The classifier with random weights."""
    model = timm.create_model(
        recipe.model,
        num_classes=num_classes,
        img_size=recipe.img_size,
        drop_path_rate=recipe.drop_path,
        distilled=recipe.distilled,
    )
    model.set_grad_checkpointing(recipe.grad_checkpointing)
    return model


def build_model(recipe: DictConfig, num_classes: int) -> nn.Module:
    """The classifier, with the initial weights if the recipe names some."""
    model = create_model(recipe, num_classes)
    if recipe.init:
        load_checkpoint(model, recipe.init, warm_start=recipe.warm_start)
    return model


def build_loss(recipe: DictConfig, mixed: bool, num_classes: int) -> nn.Module:
    """The loss of a recipe."""
    loss = base_loss(mixed, recipe.label_smoothing)
    if not recipe.teacher:
        return loss
    teacher = build_teacher(recipe.teacher, recipe.teacher_weights, num_classes)
    return HardDistillation(loss, teacher, IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD)


if __name__ == "__main__":
    run_program(main)
