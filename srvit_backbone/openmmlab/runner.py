"""What a segmentation run does before it builds anything: checks its data, fits its recipe."""

import sys
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.dist import is_main_process
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from srvit_backbone.errors import InputError, fail
from srvit_backbone.openmmlab.data import check_data, keep_checked
from srvit_backbone.openmmlab.fit import fit_config
from srvit_backbone.quiet import keep_known_lines_out

OWN = ("CheckedSegDataset", "CheckedADE20KDataset")


@RUNNERS.register_module()
class CheckingRunner(Runner):
    """MMEngine's Runner, which first checks the data and fits the recipe if its config asks for it.

    A user's mistake ends the program with one line.
    """

    @classmethod
    def from_cfg(cls, cfg: Config) -> Runner:
        """Build a runner; ``fit.batch`` and ``fit.memory`` of the config are followed."""
        with one_line_errors():
            _check(cfg)
            fit = cfg.get("fit", {})
            if fit.get("batch") or fit.get("memory"):
                table = fit_config(cfg, int(fit.get("batch") or 0), fit.get("memory", ""))
                if is_main_process():
                    print(table)
            return super().from_cfg(cfg)

    def train(self) -> Any:
        """Train."""
        with one_line_errors():
            return super().train()

    def test(self) -> Any:
        """Test."""
        with one_line_errors():
            return super().test()

    def build_logger(self, *args: Any, **settings: Any) -> Any:
        """MMEngine's logger, without lines that nobody can act on."""
        logger = super().build_logger(*args, **settings)
        keep_known_lines_out(logger)
        return logger


class one_line_errors:  # noqa: N801  reads as a statement
    """Ends the program with one line where a user's mistake is met; ``strict`` lets it through."""

    strict = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, _: Any) -> None:
        if isinstance(error, InputError) and not one_line_errors.strict:
            fail(error)


def _check(cfg: Config) -> None:
    loaders = {"train": cfg.get("train_dataloader"), "val": cfg.get("val_dataloader")}
    datasets = {
        split: loader.dataset
        for split, loader in loaders.items()
        if loader and loader.dataset.get("type") in OWN
    }
    if not datasets:
        return
    if Path(sys.argv[0]).name == "test.py":  # mim test: the training pictures may not be there
        datasets = {"val": cfg.test_dataloader.dataset}
    data = check_data(datasets)
    keep_checked(datasets, data)
    if cfg.train_dataloader.dataset.get("seg_classes"):
        for name in ("decode_head", "auxiliary_head"):
            if cfg.model.get(name):
                cfg.model[name].num_classes = len(data.classes.names)
    if is_main_process():
        for line in (*data.said, *map(str, data.findings)):
            print(line)
