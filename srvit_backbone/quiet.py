"""Other packages' warnings that nobody who uses this one can act on, each by its own words.

All else is shown. Tools and the configs for mmseg ask for this; importing the package does not.
"""

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterator

# (what says it and why it is of no use, category, how the message begins)
WARNINGS: tuple[tuple[str, type[Warning], str], ...] = (
    ("Detectron2 and fvcore compile small functions", FutureWarning, "`torch.jit.script`"),
    ("the same, as torch 2.9 says it", DeprecationWarning, "`torch.jit.script`"),
    ("Detectron2's anchors", UserWarning, "torch.meshgrid: in an upcoming release"),
    ("Detectron2's model zoo", UserWarning, "pkg_resources is deprecated as an API"),
    ("mmcv without compiled operations", UserWarning, "Fail to import ``MultiScaleDeformable"),
    ("the paper's recipe averages so", UserWarning, "Default ``avg_non_ignore`` is False"),
    ("mmseg's hook waits for --show-dir", UserWarning, "The draw is False, it means that"),
    ("torch's exporter names its own parts", UserWarning, "# 'dynamic_axes' is not recommended"),
)
LOG_LINES = re.compile(
    # What is behind the last feature is frozen on purpose.
    r"\S*backbone\.\S+ is skipped since its requires_grad=False"
    # Of torch itself, when timm builds a model.
    r"|is_fx_tracing will return true"
    r"|The prefix is not set in metric class IoUMetric"
    r'|"FileClient" will be deprecated'
    r'|"HardDiskBackend" is the alias of "LocalBackend"'
)
# mmseg prints it, whatever the log's level.
PRINTED = "Could not import OneDL"


def silence_known_warnings() -> None:
    """Filter WARNINGS from here on."""
    for _, category, message in WARNINGS:
        warnings.filterwarnings("ignore", re.escape(message), category)
    keep_known_lines_out(logging.getLogger("torch.fx._symbolic_trace"))


def keep_known_lines_out(logger: logging.Logger) -> None:
    """Filter LOG_LINES out of a logger."""
    logger.addFilter(lambda record: not LOG_LINES.match(record.getMessage()))


@contextlib.contextmanager
def without_printed_lines() -> Iterator[None]:
    """Keep PRINTED out of what an import prints."""
    held = io.StringIO()
    try:
        with contextlib.redirect_stdout(held):
            yield
    finally:
        for line in held.getvalue().splitlines():
            if line != PRINTED:
                print(line)
