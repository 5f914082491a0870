"""What a segmentation run does beside training: checks at its start, exact resume, results."""

from pathlib import Path
from typing import Any

import torch
from mmengine.dist import get_rank, get_world_size, is_main_process
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import HOOKS
from mmengine.runner import BaseLoop, Runner
from torch.nn.modules.batchnorm import _BatchNorm

from srvit_backbone.errors import InputError
from srvit_backbone.files import write_json
from srvit_backbone.openmmlab.predict import prediction_sheet
from srvit_backbone.training.class_names import class_change
from srvit_backbone.training.run_record import RunRecord, fingerprint
from srvit_backbone.training.stream import seed_iteration


@HOOKS.register_module()
class RunChecks(Hook):
    """Stop a run that cannot work before its first iteration, saying why."""

    priority = "VERY_HIGH"

    def before_train(self, runner: Runner) -> None:
        """Compare the classes of data and heads; refuse a batch of one.

        Raises:
            InputError: They differ, or batch norm would see one value a channel.
        """
        model = _bare(runner.model)
        classes = runner.train_dataloader.dataset.metainfo["classes"]
        for name in ("decode_head", "auxiliary_head"):
            head = getattr(model, name, None)
            if head is not None and head.num_classes != len(classes):
                raise InputError(
                    f"{name}.num_classes={head.num_classes}, but the data set has {len(classes)} "
                    f"classes: {', '.join(classes[:10])}"
                )
        norms = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.training]
        shared = all(isinstance(m, torch.nn.SyncBatchNorm) for m in norms)
        images = runner.train_dataloader.batch_size * (get_world_size() if shared else 1)
        if norms and images == 1:
            raise InputError(
                "a batch of one cannot train: the head's pooling to 1x1 leaves batch norm one "
                "value a channel. Set train_dataloader.batch_size=2 or more"
            )

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Compare a file's classes and schedule with those of the run, before it is loaded.

        The heads of a run that starts from a file of as many, but other classes keep their initial
        values.

        Raises:
            InputError: The run resumes with another schedule, which MMEngine would silently
                ignore; or resumes or tests with other classes.
        """
        training = isinstance(runner._train_loop, BaseLoop)
        dataset = (runner.train_dataloader if training else runner.test_dataloader).dataset
        saved = checkpoint.get("meta", {}).get("dataset_meta") or {}
        change = class_change(saved.get("classes"), dataset.metainfo["classes"])
        if training and not runner._resume:
            if change:
                _keep_class_heads(runner, checkpoint, change)
            return
        if change:
            raise InputError(f"the checkpoint's classes are not the data's: {change}")
        if not training:
            return
        for scheduler, saved in zip(
            runner.param_schedulers, checkpoint.get("param_schedulers", []), strict=False
        ):
            if scheduler.end != saved["end"]:
                raise InputError(
                    f"the run was started with a schedule to iteration {saved['end']}, the config "
                    f"has {scheduler.end}: resume with the old one, or start a new run from these "
                    "weights with load_from=FILE"
                )


@HOOKS.register_module()
class SeedIterations(Hook):
    """Seed every iteration from (seed, iteration, rank), so that a resumed run ends the same."""

    def before_train_iter(self, runner: Runner, *_: Any, **__: Any) -> None:
        """Seed torch."""
        seed_iteration(runner.seed or 0, runner.iter, get_rank(), get_world_size())


@HOOKS.register_module()
class WriteResults(Hook):
    """Write run.json, metrics_final.json and predictions.png into the work folder.

    Args:
        images: Images in predictions.png, 0 for none.
    """

    priority = "VERY_LOW"

    def __init__(self, images: int = 12) -> None:
        self.images = images
        self.metrics: dict[str, float] = {}
        self.record: RunRecord | None = None

    def before_train(self, runner: Runner) -> None:
        """Begin the record."""
        if not is_main_process():
            return
        data = {"train": runner.train_dataloader, "val": runner.val_dataloader}
        initial = getattr(_bare(runner.model).backbone, "init_cfg", None) or {}
        self.record = RunRecord(
            Path(runner.work_dir),
            config=runner.cfg.to_dict(),
            seed=runner.seed,
            images_a_step=runner.train_dataloader.batch_size * get_world_size(),
            data={split: _fingerprint(loader.dataset) for split, loader in data.items()},
            weights=runner._load_from or dict(initial).get("checkpoint"),
            processes=get_world_size(),
            resumed=runner._resume,
        )

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        """Remember the last evaluation."""
        self.metrics = _as_numbers(metrics)

    def after_train(self, runner: Runner) -> None:
        """Write the last evaluation and a sheet of predictions."""
        if not self.metrics:  # a run that was finished already
            runner.val_loop.run()
        self._write(runner, runner.val_dataloader.dataset)
        if self.record:
            self.record.finish(self.metrics)

    def after_test_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        """Write the test's metrics and a sheet of predictions."""
        self.metrics = _as_numbers(metrics)
        self._write(runner, runner.test_dataloader.dataset)

    def _write(self, runner: Runner, dataset: Any) -> None:
        if not is_main_process():
            return
        folder = Path(runner.work_dir)
        write_json(folder / "metrics_final.json", self.metrics)
        if self.images:
            model = _bare(runner.model)
            model = getattr(model, "module", model)  # test-time augmentation wraps it once more
            prediction_sheet(model, runner.cfg, dataset, self.images).save(
                folder / "predictions.png"
            )
        runner.logger.info("Results in %s", folder)


def _fingerprint(dataset: Any) -> dict[str, Any]:
    if not hasattr(dataset, "places"):
        return fingerprint(*dataset.data_prefix.values())
    return {**fingerprint(*dataset.places()), **dataset.record}


def _bare(model: Any) -> Any:
    return model.module if is_model_wrapper(model) else model


def _as_numbers(metrics: dict[str, Any] | None) -> dict[str, float]:
    # mmseg's are NumPy's.
    return {name: float(value) for name, value in (metrics or {}).items()}


def _keep_class_heads(runner: Runner, checkpoint: dict, change: str) -> None:
    state = checkpoint.get("state_dict", checkpoint)
    own = _bare(runner.model).state_dict()
    names = [name for name in own if ".conv_seg." in name]
    runner.logger.warning(
        "%s: %s keep their initial values: %s", runner._load_from, ", ".join(names), change
    )
    state.update({name: own[name] for name in names})
