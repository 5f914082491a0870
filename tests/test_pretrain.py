"""tools/train_imagenet.py and its parts, on the real digits."""

import csv
import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import numpy as np
import pytest
import timm
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from conftest import ROOT, assert_one_line_error, run_tool
from omegaconf import OmegaConf
from PIL import Image
from safetensors.torch import load_file
from timm.data import Mixup
from timm.scheduler import create_scheduler_v2
from torch import nn

from srvit_backbone.errors import InputError
from srvit_backbone.pretrain.build import build_model
from srvit_backbone.pretrain.data import Data, build_data, own_share
from srvit_backbone.pretrain.distill import HardDistillation, base_loss, build_teacher
from srvit_backbone.pretrain.recipe import load_recipe, plan_batch
from srvit_backbone.pretrain.trainer import Trainer

RECIPES = ROOT / "pretrained" / "recipes"
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SHORT = (
    "digits", "epochs=3", "batch_size=64", "lr_batch_size=64", "warmup_epochs=0",
    "log_interval=2",
)  # fmt: skip


@pytest.fixture(scope="module")
def all_digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "digits"
    assert run_tool("make_mini_dataset.py", "digits", folder).returncode == 0
    return folder


@pytest.fixture(scope="module")
def digits(all_digits, tmp_path_factory):
    """Of each class 33 digits for training, five batches of 64 an epoch, and 9 for validation."""
    folder = tmp_path_factory.mktemp("data") / "few"
    for split, count in (("train", 33), ("val", 9)):
        for path in all_digits.glob(f"{split}/*"):
            target = folder / split / path.name
            target.mkdir(parents=True)
            for picture in sorted(path.iterdir())[:count]:
                shutil.copy(picture, target)
    return folder


def train(digits, output, *options):
    return run_tool("train_imagenet.py", *SHORT, f"data={digits}", f"output={output}", *options)


def weights(folder):
    return torch.load(folder / "last.pth", weights_only=True)


def rows(folder):
    return list(csv.DictReader((folder / "summary.csv").open()))


# --- recipes ------------------------------------------------------------------------


def test_base_recipe_is_deits():
    """Section D.1 and DeiT's published settings."""
    recipe = load_recipe(RECIPES, ["srvit_s_t3"], [])
    expected = {
        "epochs": 300, "batch_size": 1024, "lr": 1e-3, "weight_decay": 0.05, "min_lr": 1e-5,
        "warmup_lr": 1e-6, "auto_augment": "rand-m9-mstd0.5-inc1", "repeated_augment": 3,
        "random_erasing": 0.25, "mixup": 0.8, "cutmix": 1.0, "mixup_switch": 0.5,
        "label_smoothing": 0.1, "drop_path": 0.1, "crop_pct": 0.875, "warmup_epochs": 20,
    }  # fmt: skip
    assert {key: recipe[key] for key in expected} == expected
    warm_ups = [load_recipe(RECIPES, [f"srvit_s_t{t}"], []).warmup_epochs for t in (2, 3, 4)]
    assert warm_ups == [10, 20, 30]
    assert load_recipe(RECIPES, [], []).warmup_epochs == 5


def test_later_recipes_and_the_command_line_win():
    recipe = load_recipe(RECIPES, ["srvit_s_t3", "distill", "finetune_384"], ["lr=3e-5"])
    assert (recipe.model, recipe.img_size, recipe.lr) == ("srvit_s_t3", 384, 3e-5)
    assert (recipe.teacher, recipe.weight_decay) == ("regnety_160", 1e-8)
    assert recipe.min_lr == 1e-5
    assert recipe.output == "output/pretrain/srvit_s_t3_384"


@pytest.mark.parametrize(
    ("names", "overrides", "words"),
    [
        ([], ["learning_rate=1"], "no key learning_rate"),
        ([], ["warmup_epoch=1"], "did you mean warmup_epochs"),
        (["srvit_x"], [], "there are deit, digits"),
        ([], ["model=resnet50"], "choose one of srvit_t_t2"),
        ([], ["amp=fp8"], "must be one of none, bfloat16, float16"),
        ([], ["epochs=0"], "epochs=0"),
        ([], ["distilled=true"], "needs a teacher"),
        ([], ["teacher=regnety_160"], "distilled=true"),
    ],
)
def test_wrong_recipes_are_explained(names, overrides, words):
    with pytest.raises(InputError, match=words):
        load_recipe(RECIPES, names, overrides)


@pytest.mark.parametrize(
    ("processes", "expected"), [(1, (4, 256)), (2, (2, 256)), (8, (1, 128)), (3, None)]
)
def test_global_batch_holds_on_any_number_of_processes(processes, expected):
    recipe = load_recipe(RECIPES, [], [])
    if expected is None:
        with pytest.raises(InputError, match="multiple of 3 processes"):
            plan_batch(recipe, processes)
        return
    plan = plan_batch(recipe, processes)
    assert (plan.accumulation, plan.images) == expected
    assert plan.processes * plan.accumulation * plan.images == 1024


def test_learning_rate_is_linear_then_cosine():
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([parameter], lr=1e-3)
    scheduler, epochs = create_scheduler_v2(
        optimizer, sched="cosine", num_epochs=300, warmup_epochs=5, warmup_lr=1e-6, min_lr=1e-5
    )
    assert epochs == 300
    rates = []
    for epoch in (0, 1, 4, 5, 150, 299):
        scheduler.step(epoch)
        rates.append(optimizer.param_groups[0]["lr"])
    linear = [1e-6 + (1e-3 - 1e-6) * e / 5 for e in (0, 1, 4)]
    cosine = [
        1e-5 + (1e-3 - 1e-5) * (1 + torch.pi * 0 + torch.cos(torch.tensor(torch.pi * e / 300))) / 2
        for e in (5, 150, 299)
    ]
    assert rates == pytest.approx([*linear, *map(float, cosine)], rel=1e-4)


# --- distillation (field report 19) -------------------------------------------------


class Teacher(nn.Module):
    """Says which channel is brightest, in its own normalisation."""

    pretrained_cfg = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    num_classes = 3

    def forward(self, images):
        self.seen = images
        return images.mean(dim=(2, 3))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_hard_distillation_is_the_mix_of_two_cross_entropies(alpha):
    teacher = Teacher()
    loss = HardDistillation(base_loss(False, 0.1), teacher, MEAN, STD, alpha).train()
    assert not teacher.training
    pixels = torch.rand(4, 3, 8, 8)
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (MEAN, STD))
    pair = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    targets = torch.tensor([0, 1, 2, 0])
    result = loss((pixels - mean) / std, pair, targets)
    # The teacher sees the same pixels in its own statistics.
    torch.testing.assert_close(teacher.seen, (pixels - 0.5) / 0.5, atol=1e-5, rtol=1e-5)
    labels = pixels.mean(dim=(2, 3)).argmax(dim=1)
    smoothed = nn.functional.cross_entropy(pair[0], targets, label_smoothing=0.1)
    hard = nn.functional.cross_entropy(pair[1], labels)  # not smoothed
    torch.testing.assert_close(result, (1 - alpha) * smoothed + alpha * hard)
    with pytest.raises(InputError, match="distilled=true"):
        loss(pixels, pair[0], targets)


def test_teacher_of_other_classes_is_refused(tmp_path):
    path = tmp_path / "teacher.pth"
    torch.save(timm.create_model("regnety_002", num_classes=7).state_dict(), path)
    assert build_teacher("regnety_002", str(path), 7).num_classes == 7
    with pytest.raises(InputError, match="7 classes, the data 10"):
        build_teacher("regnety_002", str(path), 10)
    with pytest.raises(InputError, match="no model regnet_x"):
        build_teacher("regnet_x", "", 10)


# --- one step, written out by hand ---------------------------------------------------


def mixed_by_hand(images, labels, classes, seed):
    """DeiT's mixup or cutmix of a batch with its own flip, and the soft targets."""
    np.random.seed(seed)
    np.random.rand()  # whether to mix at all: always
    cut = np.random.rand() < 0.5
    share = np.random.beta(1.0, 1.0) if cut else np.random.beta(0.8, 0.8)
    mixed = images.clone()
    if cut:
        height, width = images.shape[-2:]
        half_y, half_x = (int(side * np.sqrt(1 - share)) for side in (height, width))
        y, x = np.random.randint(0, height), np.random.randint(0, width)
        top, bottom = max(0, y - half_y // 2), min(height, y + (half_y + 1) // 2)
        left, right = max(0, x - half_x // 2), min(width, x + (half_x + 1) // 2)
        for index in range(len(images)):
            other = images[len(images) - 1 - index]
            mixed[index, :, top:bottom, left:right] = other[:, top:bottom, left:right]
        share = 1 - (bottom - top) * (right - left) / (height * width)
    else:
        for index in range(len(images)):
            other = images[len(images) - 1 - index]
            mixed[index] = share * images[index] + (1 - share) * other
    targets = torch.full((len(labels), classes), 0.1 / classes)
    for index, label in enumerate(labels.tolist()):
        targets[index, label] += share * 0.9
        targets[index, labels[len(labels) - 1 - index]] += (1 - share) * 0.9
    return cut, mixed, targets


@pytest.mark.parametrize("distilled", [False, True])
@pytest.mark.parametrize("seed", [0, 2])
def test_one_step_is_deits_by_hand(tmp_path, seed, distilled):
    """Learning rate, mixed images and targets, both losses, decay groups and AdamW, to 1e-6."""
    classes = 3
    images, labels = torch.randn(6, 3, 32, 32), torch.tensor([0, 1, 2, 2, 0, 1])
    overrides = ["model=srvit_nano_t2", "img_size=32", "drop_path=0", "batch_size=6"]
    recipe = load_recipe(RECIPES, [], overrides)
    model = timm.create_model(
        "srvit_nano_t2", img_size=32, num_classes=classes, distilled=distilled
    )
    expected = {name: p.detach().clone() for name, p in model.named_parameters()}
    mixup = Mixup(0.8, 1.0, switch_prob=0.5, label_smoothing=0.1, num_classes=classes)
    loss = base_loss(True, recipe.label_smoothing)
    if distilled:
        loss = HardDistillation(loss, Teacher(), MEAN, STD)
    data = Data([(images.clone(), labels)], None, 0, mixup, classes)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        run = Trainer(recipe, model, loss, data, plan_batch(recipe, 1), tmp_path)
        run.scheduler.step(3)
        run._seed = lambda epoch: np.random.seed(seed)
        result = run._train_epoch(3)
    finally:
        dist.destroy_process_group()
    found = {name: p.detach().clone() for name, p in model.named_parameters()}

    cut, mixed, targets = mixed_by_hand(images, labels, classes, seed)
    assert cut == (seed == 2)  # both kinds are covered
    model.load_state_dict(expected)
    model.zero_grad()
    outputs = model(mixed)
    log_probabilities = (outputs[0] if distilled else outputs).log_softmax(dim=1)
    by_hand = -(targets * log_probabilities).sum(dim=1).mean()
    if distilled:
        teacher = Teacher()
        pixels = mixed * torch.tensor(STD)[:, None, None] + torch.tensor(MEAN)[:, None, None]
        hard = teacher((pixels - 0.5) / 0.5).argmax(dim=1)
        picked = outputs[1].log_softmax(dim=1)[torch.arange(6), hard]
        by_hand = 0.5 * by_hand - 0.5 * picked.mean()
    assert result == pytest.approx(by_hand.item(), abs=1e-6)
    by_hand.backward()
    peak = 1e-3 * 6 / 1024
    rate = 1e-6 + (peak - 1e-6) * 3 / 5  # third of five epochs of warm-up
    for name, parameter in model.named_parameters():
        # AdamW divides by the gradient's size, so rounding would count fully where it is tiny:
        # the gradient is compared by itself, then the step that was made of it.
        gradient = run.optimizer.state[parameter]["exp_avg"] / 0.1
        torch.testing.assert_close(gradient, parameter.grad, atol=1e-6, rtol=1e-5, msg=name)
        decayed = parameter.ndim > 1 and name not in ("pos_embed", "cls_token", "dist_token")
        value = expected[name] * (1 - rate * 0.05 * decayed)
        # AdamW's first step, whose two means are the gradient and its square.
        value -= rate * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(found[name], value, atol=1e-7, rtol=1e-6, msg=name)
        assert not torch.equal(found[name], expected[name]) or not gradient.any(), name


# --- runs ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(digits, tmp_path_factory):
    """Three epochs, never interrupted."""
    folder = tmp_path_factory.mktemp("run")
    process = train(digits, folder)
    assert process.returncode == 0, process.stderr
    return folder, process.stdout


def test_run_leaves_what_it_promises(run):
    folder, log = run
    table = rows(folder)
    assert [row["epoch"] for row in table] == ["0", "1", "2"]
    assert float(table[-1]["train_loss"]) < float(table[0]["train_loss"])
    assert OmegaConf.load(folder / "recipe.yaml").epochs == 3
    assert list(folder.glob("events.out.tfevents.*"))
    assert "1 processes x 1 micro-batches x 64 images" in log
    assert "ETA" in log
    record = json.loads((folder / "run.json").read_text())
    assert record["config"] == OmegaConf.to_container(OmegaConf.load(folder / "recipe.yaml"))
    assert record["results"]["top1"] == pytest.approx(float(table[-1]["top1"]))
    steps, images = divmod(record["data"]["train"]["files"], 64)
    assert record["images_a_step"] == 64 * steps > images
    assert len(record["sessions"]) == 1


def killed_and_resumed(digits, folder, launcher=(), options=()):
    tool = [str(ROOT / "tools" / "train_imagenet.py"), *SHORT, *options]
    command = [sys.executable, *launcher, *tool, f"data={digits}", f"output={folder}"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 200
    while not (folder / "last.pth").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert weights(folder)["epoch"] < 3
    subprocess.run([*command, "--resume"], check=True, capture_output=True)


def test_killed_and_resumed_run_is_the_same(digits, tmp_path):
    options = ["num_workers=2"]  # they are part of the run: augmentations belong to them
    assert train(digits, tmp_path / "whole", *options).returncode == 0
    killed_and_resumed(digits, tmp_path / "killed", options=options)
    assert_same_run(tmp_path / "killed", tmp_path / "whole")


def test_interrupted_and_resumed_run_is_the_same(digits, run, tmp_path, monkeypatch):
    """Without loading workers, stopped in the middle of its second epoch."""
    whole_step = Trainer._micro_batch
    steps = itertools.count()

    def stopping(self, *arguments):
        if next(steps) == 7:
            raise InputError("stopped")
        return whole_step(self, *arguments)

    monkeypatch.setattr(Trainer, "_micro_batch", stopping)
    assert_one_line_error(train(digits, tmp_path, "num_workers=0"), "stopped")
    monkeypatch.setattr(Trainer, "_micro_batch", whole_step)
    assert weights(tmp_path)["epoch"] == 1
    assert train(digits, tmp_path, "num_workers=0", "--resume").returncode == 0
    assert_same_run(tmp_path, run[0])


def assert_same_run(folder, expected):
    first, second = weights(folder), weights(expected)
    for name, value in second["state_dict"].items():
        assert torch.equal(first["state_dict"][name], value), name
    assert rows(folder) == rows(expected)


@pytest.mark.slow
def test_two_processes_resume_the_same(digits, tmp_path):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    tool = [str(ROOT / "tools" / "train_imagenet.py"), *SHORT]
    whole = tmp_path / "whole"
    subprocess.run(
        [sys.executable, *launcher, *tool, f"data={digits}", f"output={whole}"],
        check=True,
        capture_output=True,
    )
    killed_and_resumed(digits, tmp_path / "killed", launcher)
    assert_same_run(tmp_path / "killed", whole)


def test_accumulation_and_processes_give_the_whole_batchs_weights(digits, tmp_path):
    plain = ("scale=[1.0,1.0]", "epochs=1")
    assert train(digits, tmp_path / "whole", *plain).returncode == 0
    parts = train(digits, tmp_path / "parts", *plain, "max_batch_per_process=16")
    assert "4 micro-batches x 16 images" in parts.stdout
    subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", str(ROOT / "tools" / "train_imagenet.py"), *SHORT, *plain),
            *(f"data={digits}", f"output={tmp_path / 'two'}"),
        ],
        check=True,
        capture_output=True,
    )
    whole = weights(tmp_path / "whole")["state_dict"]
    for other in ("parts", "two"):
        found = weights(tmp_path / other)["state_dict"]
        for name, value in whole.items():
            torch.testing.assert_close(found[name], value, atol=2e-3, rtol=1e-3)


def test_wrapped_model_has_deits_weight_decay(run):
    """The optimizer's groups as saved: matrices decayed, all else not."""
    groups = weights(run[0])["optimizer"]["param_groups"]
    model = timm.create_model("srvit_nano_t3", num_classes=10, img_size=64)
    undecayed = [
        name for name, p in model.named_parameters()
        if p.ndim == 1 or name in ("pos_embed", "cls_token")
    ]  # fmt: skip
    sizes = {group["weight_decay"]: len(group["params"]) for group in groups}
    total = len(list(model.parameters()))
    assert sizes == {0.0: len(undecayed), 0.05: total - len(undecayed)}


def test_evaluation_only_gives_the_runs_figure(digits, run):
    process = train(digits, run[0], "--eval-only", f"init={run[0] / 'last.pth'}")
    assert process.returncode == 0, process.stderr
    top1 = float(rows(run[0])[-1]["top1"])
    assert f'"top1": {top1:.3f}'[:14] in process.stdout


def test_accuracy_by_steps_ends_with_the_runs_own(run, tmp_path):
    process = run_tool("fewer_steps.py", run[0])
    assert process.returncode == 0, process.stderr
    lines = [line for line in process.stdout.splitlines() if line.startswith("|")][2:]
    table = [[float(cell) for cell in line.strip("|").split("|")] for line in lines]
    assert [line[:2] for line in table] == [[1, 5], [2, 8], [3, 11]]
    best = torch.load(run[0] / "best.pth", weights_only=True)["best"]
    assert table[-1][3] == pytest.approx(best, abs=0.006)
    assert table[0][2] < table[1][2] < table[2][2]
    assert_one_line_error(run_tool("fewer_steps.py", tmp_path), "no run of tools/train_imagenet.py")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("data=nowhere",), "no data at nowhere"),
        (("output=/proc/run",), "cannot write to output=/proc/run"),
        (("batch_size=5000",), "does not fill one batch"),
        (("lr=1e30",), "the loss is not finite"),
        (("init=nowhere.pth",), "no checkpoint at nowhere.pth"),
    ],
)
def test_bad_input_is_one_line(digits, tmp_path, options, words):
    process = train(digits, tmp_path / "out", *options)
    assert_one_line_error(process, words)


@pytest.mark.parametrize(("classes", "kept"), [(10, True), (7, False)])
def test_384_from_a_distilled_file_keeps_both_heads_if_the_classes_match(tmp_path, classes, kept):
    """Field report 19."""
    source = timm.create_model("srvit_nano_t3", num_classes=10, distilled=True)
    torch.save({"state_dict": source.state_dict()}, tmp_path / "best.pth")
    overrides = [
        *(f"init={tmp_path / 'best.pth'}", "model=srvit_nano_t3"),
        *("distilled=true", "teacher=regnety_160"),
    ]
    recipe = load_recipe(RECIPES, ["finetune_384"], overrides)
    model = build_model(recipe, classes)
    for name in ("head", "head_dist"):
        same = torch.equal(getattr(model, name).weight[:7], getattr(source, name).weight[:7])
        assert same == kept
    assert model.grid_size == (24, 24)


def test_tar_files_give_what_their_folders_give(digits, run, tmp_path):
    folder = tmp_path / "tars"
    folder.mkdir()
    for split in ("train", "val"):
        with tarfile.open(folder / f"{split}.tar", "w") as archive:
            archive.add(digits / split, arcname=".")
    process = train(folder, run[0], "--eval-only", f"init={run[0] / 'last.pth'}")
    assert process.returncode == 0, process.stderr
    top1 = float(rows(run[0])[-1]["top1"])
    assert f'"top1": {top1:.3f}'[:14] in process.stdout
    assert train(folder, tmp_path / "out", "epochs=1").returncode == 0
    process = train(folder / "train.tar", tmp_path / "one")
    assert_one_line_error(process, "train.tar and val.tar")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_damaged_picture_is_named_and_skipped_only_if_asked(tmp_path, workers):
    data = write_pictures(tmp_path / "data", 16)
    damaged = sorted((data / "train").rglob("*.png"))[3]
    damaged.write_bytes(damaged.read_bytes()[:60])
    options = ("batch_size=8", "lr_batch_size=8", "epochs=1", f"num_workers={workers}")
    process = train(data, tmp_path / "strict", *options)
    assert_one_line_error(process, damaged.name, "skip_corrupt=true")
    process = train(data, tmp_path / "skipping", *options, "skip_corrupt=true")
    assert process.returncode == 0, process.stderr


def write_pictures(folder, count):
    """``count`` training pictures in two classes, and as many for validation."""
    for number, split in enumerate(("train", "val")):
        for index in range(count):
            part = folder / split / str(index % 2)
            part.mkdir(parents=True, exist_ok=True)
            pixels = np.random.default_rng((number, index)).integers(0, 256, (36, 36, 3), np.uint8)
            Image.fromarray(pixels).save(part / f"{index:04d}.png")
    return folder


COUNTS = (10, 255, 300, 1000)


def count_batches(rank, world, folder, result):
    dist.init_process_group("gloo", f"file://{result}.init", rank=rank, world_size=world)
    torch.set_num_threads(1)
    for count in COUNTS:
        recipe = load_recipe(
            RECIPES, [], [f"data={folder}/{count}", "img_size=32", "num_workers=0"]
        )
        data = build_data(recipe, 8, torch.device("cpu"))
        produced = 0
        for images, targets in data.train:
            produced += 1
            if len(images) % 2 == 0:
                data.mixup(images, targets)
        left, seen = own_share(data.val_images), []
        for images, _ in data.val:
            kept = images[: min(left, len(images))]
            left -= len(kept)
            seen += [hashlib.sha256(image.numpy().tobytes()).hexdigest() for image in kept]
        torch.save((len(data.train), produced, seen), f"{result}.{rank}.{count}")
    dist.destroy_process_group()


@pytest.mark.parametrize("world", [1, 2])
def test_loader_tells_its_length_and_validation_sees_each_image_once(tmp_path, world):
    for count in COUNTS:
        write_pictures(tmp_path / "data" / str(count), count)
    result = str(tmp_path / "result")
    if world == 1:
        count_batches(0, 1, tmp_path / "data", result)
    else:
        mp.spawn(count_batches, (world, tmp_path / "data", result), nprocs=world)
    for count in COUNTS:
        parts = [torch.load(f"{result}.{rank}.{count}") for rank in range(world)]
        seen = [value for _, _, values in parts for value in values]
        assert len(seen) == count
        assert len(set(seen)) == count
        for announced, produced, _ in parts:
            assert announced == produced


def test_other_recipe_does_not_resume(digits, run):
    process = train(digits, run[0], "--resume", "lr=0.5")
    assert_one_line_error(process, "another recipe", "lr was 0.002, is 0.5")
    assert_one_line_error(train(digits, run[0]), "holds a run", "--resume")


def test_published_weights_are_the_best_ones_and_checked(run, tmp_path):
    folder = tmp_path / "pretrained"
    folder.mkdir()
    process = run_tool("publish_weights.py", run[0], "--folder", folder)
    assert process.returncode == 0, process.stderr
    path = folder / "srvit_nano_t3.safetensors"
    state = load_file(path)
    best = torch.load(run[0] / "best.pth", weights_only=True)
    for name, value in best["state_dict"].items():
        assert torch.equal(state[name], value), name
    record = json.loads((folder / "index.json").read_text())["srvit_nano_t3"]
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (record["resolution"], record["top1"]) == (64, round(best["best"], 2))
    assert "train_imagenet.py digits" in record["command"]
    page = (folder / "README.md").read_text()
    assert page.count("srvit_nano_t3.safetensors") == 1
    assert record["sha256"][:16] in page
    assert run_tool("publish_weights.py", "--check", "--folder", folder).returncode == 0
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    process = run_tool("publish_weights.py", "--check", "--folder", folder)
    assert_one_line_error(process, "its sha256 differs")


@pytest.mark.slow
def test_digits_recipe_reads_digits(all_digits, tmp_path):
    output = tmp_path / "out"
    process = run_tool("train_imagenet.py", "digits", f"data={all_digits}", f"output={output}")
    assert process.returncode == 0, process.stderr
    assert max(float(row["top1"]) for row in rows(output)) >= 95
