"""A pretraining run from recipe to results: training, evaluation, resuming, what is left."""

import argparse
import json
import logging
import sys
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
from omegaconf import DictConfig, OmegaConf

from srvit_backbone.errors import InputError
from srvit_backbone.pretrain.build import build_loss, build_model, create_model
from srvit_backbone.pretrain.data import build_data
from srvit_backbone.pretrain.fit import fit_recipe
from srvit_backbone.pretrain.images import ClassFolders
from srvit_backbone.pretrain.processes import start_process_group
from srvit_backbone.pretrain.recipe import load_recipe, load_yaml, plan_batch
from srvit_backbone.pretrain.trainer import Trainer
from srvit_backbone.training.run_record import RunRecord, fingerprint

logger = logging.getLogger(__name__)


def run(args: argparse.Namespace) -> None:
    """Train or evaluate; one process of the run.

    Args:
        args: As tools/train_imagenet.py parses them.

    Raises:
        InputError: Recipe, data, weights or folder cannot be used.
    """
    names = [value for value in args.recipe if "=" not in value]
    recipe = load_recipe(args.recipes, names, [value for value in args.recipe if "=" in value])

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
        for line in data.understood:
            logger.info(line)
        torch.manual_seed(recipe.seed)
        model = build_model(recipe, data.num_classes).to(device)
        loss = build_loss(recipe, data.mixup is not None, data.num_classes).to(device)
        trainer = Trainer(recipe, model, loss, data, plan, folder)
        if args.eval_only:
            top1, top5 = trainer.evaluate(model)
            if dist.get_rank() == 0:
                print(json.dumps({"top1": round(top1, 3), "top5": round(top5, 3)}))
            return
        resuming = args.resume and (folder / "last.pth").exists()
        if resuming:
            trainer.resume()
        record = start_record(recipe, folder, trainer, resuming) if dist.get_rank() == 0 else None
        trainer.train()
        if record:
            record.finish({"best top-1": trainer.best, **trainer.rows[-1]})
        logger.info("best top-1 %.2f, %s", trainer.best, folder / "best.pth")
    finally:
        dist.destroy_process_group()


def prepare_output(recipe: DictConfig, args: argparse.Namespace) -> Path:
    """Create the output folder, start the log, save the resolved recipe.

    Raises:
        InputError: It cannot be written, or holds a run that this would overwrite or change.
    """
    folder = Path(recipe.output)
    resolved = resolve(recipe)
    main = dist.get_rank() == 0
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stdout)] if main else []
    if not args.eval_only:
        saved = folder / "recipe.yaml"
        if (folder / "last.pth").exists():
            if not args.resume:
                raise InputError(
                    f"{folder} holds a run: --resume continues it, output=... starts another"
                )
            old = resolve(load_yaml(saved))
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
    start_log(handlers, logging.INFO if main else logging.ERROR)
    return folder


def start_log(handlers: list[logging.Handler], level: int) -> None:
    """Send the package's messages to these handlers, and no longer to those of an earlier run."""
    package = logging.getLogger("srvit_backbone")
    for old in package.handlers[:]:
        package.removeHandler(old)
        old.close()
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%m-%d %H:%M:%S"))
        package.addHandler(handler)
    package.setLevel(level)


def start_record(recipe: DictConfig, folder: Path, trainer: Trainer, resuming: bool) -> RunRecord:
    """Begin the run's run.json."""

    def fingerprint_of(loader: Any) -> dict[str, Any]:
        if isinstance(loader.dataset, ClassFolders):
            return fingerprint(*sorted({str(path.parent) for path, _ in loader.dataset.samples}))
        root = getattr(loader.dataset.reader, "root", None)  # none where timm fetches the data
        return fingerprint(*([root] if root else []))

    return RunRecord(
        folder,
        config=resolve(recipe),
        seed=recipe.seed,
        images_a_step=trainer.steps * recipe.batch_size,  # the curves' steps are epochs
        data={
            "train": fingerprint_of(trainer.data.train),
            "val": fingerprint_of(trainer.data.val),
            "own": {"findings": trainer.data.understood},
        },
        weights=recipe.init,
        processes=dist.get_world_size(),
        resumed=resuming,
    )


def resolve(recipe: DictConfig) -> dict[str, Any]:
    """A recipe as plain values."""
    return cast(dict[str, Any], OmegaConf.to_container(recipe, resolve=True))
