"""What two training runs differ in, and their curves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from srvit_backbone.analysis.figures import plt, save_figure
from srvit_backbone.errors import InputError

CURVES = (
    "loss", "total_loss", "train_loss", "lr", "bbox/AP", "bbox/AP50", "segm/AP", "mIoU", "top1",
    "ema_top1",
)  # fmt: skip
# Each about the last session of a run; what is measured differs always and comes last.
MEASURED = ("wall_time_s", "peak_memory_mib", "results")


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """(key, value, value) of what is not equal in two records, settings first."""
    flat = [dict(_flatten(_last_session(record))) for record in (first, second)]
    keys = list(dict.fromkeys([*flat[0], *flat[1]]))
    rows = [(key, *(values.get(key, "-") for values in flat)) for key in keys]
    return sorted(
        ((key, old, new) for key, old, new in rows if old != new),
        key=lambda row: row[0].startswith(MEASURED),
    )


def _last_session(record: dict[str, Any]) -> dict[str, Any]:
    record = dict(record)
    sessions = record.pop("sessions")
    times = [session["wall_time_s"] for session in sessions]
    whole = None if None in times else round(sum(times), 1)
    return {**record, "sessions": len(sessions), **sessions[-1], "wall_time_s": whole}


def _flatten(content: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(content, dict) and content:
        for key, value in content.items():
            yield from _flatten(value, f"{prefix}.{key}" if prefix else key)
    elif isinstance(content, list) and any(isinstance(item, dict | list) for item in content):
        for index, item in enumerate(content):
            yield from _flatten(item, f"{prefix}.{index}")
    else:
        yield prefix, content


def read_curves(folder: Path) -> dict[str, dict[int, float]]:
    """Values by step, by name, from all TensorBoard files of a run.

    Raises:
        InputError: There are none.
    """
    logs = sorted({path.parent for path in folder.rglob("events.out.tfevents.*")})
    if not logs:
        raise InputError(f"{folder} holds no TensorBoard files: its curves cannot be drawn")
    curves: dict[str, dict[int, float]] = {}
    for log in logs:  # a resumed run of MMEngine has one more, which goes on where the last ended
        events = EventAccumulator(str(log), size_guidance={"scalars": 0}).Reload()
        for name in events.Tags()["scalars"]:
            values = {event.step: event.value for event in events.Scalars(name)}
            curves.setdefault(name, {}).update(values)
    return curves


def draw(
    curves: list[dict[str, dict[int, float]]],
    steps: list[int],
    labels: list[str],
    wanted: list[str],
    output: Path,
) -> None:
    """Draw the wanted curves of both runs over the images seen."""
    figure, axes = plt.subplots(
        1, len(wanted), figsize=(4.5 * len(wanted), 3.6), squeeze=False, layout="constrained"
    )
    for axis, name in zip(axes[0], wanted, strict=True):
        for own, images_a_step, label, style in zip(
            curves, steps, labels, ("-", "--"), strict=True
        ):
            points = sorted(own.get(name, {}).items())
            images = [(step + 1) * images_a_step for step, _ in points]
            marker = "o" if len(points) < 20 else ""
            axis.plot(images, [value for _, value in points], style, marker=marker, label=label)
        axis.set_title(name)
        axis.set_xlabel("images seen")
        axis.grid(alpha=0.3)
    axes[0][0].legend()
    save_figure(figure, output)


def chosen_curves(curves: list[dict[str, dict[int, float]]], wanted: list[str]) -> list[str]:
    """Names of the curves to draw: those wanted, else the usual ones that the runs have.

    Raises:
        InputError: No run has one of them.
    """
    known = sorted({name for own in curves for name in own})
    wanted = wanted or [name for name in CURVES if name in known]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise InputError(f"no curve {', '.join(unknown)}: the runs have {', '.join(known)}")
    return wanted
