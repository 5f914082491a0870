"""A detector's run from config to results: training, evaluation, resuming, what is left behind."""

import logging
import tempfile
from pathlib import Path
from typing import Any, cast

import torch
from detectron2.config import LazyConfig, instantiate
from detectron2.engine import create_ddp_model, hooks, launch
from detectron2.evaluation import inference_on_dataset, print_csv_format
from detectron2.utils import comm
from detectron2.utils.env import seed_all_rng
from detectron2.utils.events import CommonMetricPrinter, JSONWriter, TensorboardXWriter
from detectron2.utils.logger import setup_logger
from omegaconf import DictConfig, OmegaConf
from torch import nn

from srvit_backbone.detectron2.checkpoints import (
    BestCheckpointer,
    RunCheckpointer,
    load_initial_weights,
)
from srvit_backbone.detectron2.config import (
    DATA,
    build_model,
    check_same_run,
    choose_device,
    load_config,
    prepare_data,
    read_own_data,
)
from srvit_backbone.detectron2.data import fingerprint_of
from srvit_backbone.detectron2.fit import fit_config
from srvit_backbone.detectron2.predict import Predictor, prediction_sheet
from srvit_backbone.detectron2.trainer import Trainer
from srvit_backbone.errors import InputError
from srvit_backbone.files import write_json
from srvit_backbone.own_data.detection import Detection
from srvit_backbone.training.run_record import RunRecord

logger = logging.getLogger(__name__)


def run(args: Any) -> None:
    """Train or evaluate in as many processes as asked for.

    Args:
        args: As tools/train_net.py parses them.

    Raises:
        InputError: Config, data, weights or folder cannot be used.
    """
    config = load_config(args.config_file, args.opts)
    output = Path(config.train.output_dir)
    # Once for all processes, before a model is built or a folder made.
    data = read_own_data(config, output / DATA if args.resume else None)
    if data is not None:
        print("\n".join([*data.said, *map(str, data.findings)]))
    launch(
        _run_process,
        args.num_gpus,
        num_machines=args.num_machines,
        machine_rank=args.machine_rank,
        dist_url=args.dist_url,
        args=(args, data),
    )


def _run_process(args: Any, data: Detection | None) -> None:
    config = load_config(args.config_file, args.opts)
    prepare_data(config, args.opts, data)
    if args.batch or args.memory:
        table = fit_config(config, args.batch, args.memory, comm.get_world_size())
        if comm.is_main_process():
            print(table)
    output = prepare_output(config, args)
    if data is not None:
        if comm.is_main_process():
            data.save(output / DATA)
        comm.synchronize()
    amp_dtype = choose_device(config)
    seed_all_rng(config.train.seed)
    model = build_model(config)
    if args.eval_only:
        RunCheckpointer(model, class_names=config.class_names).load(
            existing_checkpoint(config, output)
        )
        finish(config, model, evaluate(config, model), output)
        return
    train(config, model, amp_dtype, output, args.resume, data)


def prepare_output(config: DictConfig, args: Any) -> Path:
    """Create the output folder, start the log, save the config.

    Raises:
        InputError: It cannot be written, or holds another run.
    """
    output = Path(config.train.output_dir)
    try:
        output.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=output).close()
    except OSError as error:
        raise InputError(f"cannot write to train.output_dir={output}: {error}") from None
    saved = output / "config.yaml"
    started = (output / "last_checkpoint").exists()
    if started and not args.eval_only:
        if not args.resume:
            raise InputError(
                f"{output} holds a run: --resume continues it, train.output_dir=... starts another"
            )
        check_same_run(config, saved)
    setup_logger(str(output), comm.get_rank(), name="fvcore")
    setup_logger(str(output), comm.get_rank(), name="srvit_backbone", abbrev_name="srvit")
    setup_logger(str(output), comm.get_rank())
    if comm.is_main_process() and not args.eval_only:
        LazyConfig.save(config, str(saved))
    return output


def existing_checkpoint(config: DictConfig, output: Path) -> str:
    """Weights for --eval-only: train.init_checkpoint if it is a .pth, else the run's newest."""
    path = config.train.init_checkpoint
    if path and Path(path).suffix == ".pth" and Path(path).is_file():
        return path
    tag = output / "last_checkpoint"
    if not tag.exists():
        raise InputError(
            f"--eval-only needs weights: {output} holds none, set train.init_checkpoint=FILE.pth"
        )
    return str(output / tag.read_text().strip())


def train(
    config: DictConfig,
    model: nn.Module,
    amp_dtype: torch.dtype | None,
    output: Path,
    resume: bool,
    data: Detection | None,
) -> None:
    """Train to the end of the schedule, evaluate, and write the results."""
    checkpointer = RunCheckpointer(model, str(output), config.class_names)
    resuming = resume and checkpointer.has_checkpoint()
    if not resuming:
        if config.train.init_checkpoint:
            initial = config.train.init_checkpoint
            load_initial_weights(model, initial, config.train.warm_start, config.class_names)
        else:
            logger.info("Training from scratch: train.init_checkpoint is empty")
    record = start_record(config, output, resuming, data) if comm.is_main_process() else None

    config.optimizer.params.model = model
    optimizer = instantiate(config.optimizer)
    config.optimizer.params.pop("model")
    ddp = dict(config.train.ddp)
    if config.train.device == "cpu":
        # Compression is for GPUs' interconnect; and processes on the CPU have no device of theirs.
        ddp.update(fp16_compression=False, device_ids=None)
    parallel = create_ddp_model(model, **ddp)
    limit = config.train.max_batch_per_process
    trainer = Trainer(parallel, None, optimizer, config.train.seed, amp_dtype, limit)
    checkpointer.add_checkpointable("trainer", trainer)
    results: dict[str, Any] = {}

    def evaluate_now() -> dict[str, Any]:
        results.clear()
        results.update(evaluate(config, parallel))
        return results

    best = BestCheckpointer(config.train.eval_period, checkpointer, "bbox/AP")
    main_process = comm.is_main_process()
    trainer.register_hooks(
        [
            hooks.IterationTimer(),
            hooks.LRScheduler(scheduler=instantiate(config.lr_multiplier)),
            hooks.EvalHook(config.train.eval_period, evaluate_now),
            best if main_process else None,
            hooks.PeriodicCheckpointer(checkpointer, **config.train.checkpointer)
            if main_process
            else None,
            hooks.PeriodicWriter(
                [
                    CommonMetricPrinter(config.train.max_iter),
                    JSONWriter(str(output / "metrics.json")),
                    TensorboardXWriter(str(output)),
                ],
                period=config.train.log_period,
            )
            if main_process
            else None,
        ]
    )
    start = 0
    if resuming:
        checkpointer.load(checkpointer.get_checkpoint_file())
        start = trainer.iter + 1
    if start >= config.train.max_iter:
        logger.info("The run is finished already: evaluating it again")
        evaluate_now()
    else:
        config.dataloader.train.start_iter = start
        trainer.data_loader = instantiate(config.dataloader.train)
        trainer.train(start, config.train.max_iter)
    finish(config, model, results, output)
    if record:
        record.finish(results)


def start_record(
    config: DictConfig, output: Path, resuming: bool, data: Detection | None
) -> RunRecord:
    """Begin the run's run.json."""
    # As it was saved: the config in memory holds functions and classes.
    saved = LazyConfig.load(str(output / "config.yaml"))
    splits = {"train": config.dataloader.train, "val": config.dataloader.test}
    return RunRecord(
        output,
        config=cast(dict[str, Any], OmegaConf.to_container(saved, resolve=True)),
        seed=config.train.seed,
        images_a_step=config.dataloader.train.total_batch_size,
        data={
            **{split: fingerprint_of(part.dataset.names) for split, part in splits.items()},
            **({} if data is None else {"own": data.record()}),
        },
        weights=config.train.init_checkpoint,
        processes=comm.get_world_size(),
        resumed=resuming,
    )


def evaluate(config: DictConfig, model: nn.Module) -> dict[str, Any]:
    """Box and mask AP on the validation set; {} on all processes but the first."""
    results = inference_on_dataset(
        model, instantiate(config.dataloader.test), instantiate(config.dataloader.evaluator)
    )
    if comm.is_main_process():
        print_csv_format(results)
    return results or {}


def finish(config: DictConfig, model: nn.Module, results: dict[str, Any], output: Path) -> None:
    """Write metrics_final.json and predictions.png."""
    if not comm.is_main_process():
        return
    path = output / "metrics_final.json"
    write_json(path, results)  # an AP without any object of its size is NaN, there null
    if config.train.prediction_sheet:
        dataset = config.dataloader.test.dataset.names
        sheet = prediction_sheet(Predictor(config, model), dataset, config.train.prediction_sheet)
        sheet.save(output / "predictions.png")
    logger.info("Results in %s, pictures beside it", path)
