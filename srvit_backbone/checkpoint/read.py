"""Reading a checkpoint file safely, and finding the weights in it."""

import argparse
import os
import pickle
import re
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from srvit_backbone.errors import InputError

StateDict = dict[str, Tensor]

# Where the weights are in files people have, the averaged ones first (timm's choice as well).
EMA_KEYS = ("state_dict_ema", "model_ema", "ema_state_dict")
RAW_KEYS = ("state_dict", "model")


class _Ignored:
    """Stands in for what a file holds beside weights and is never used; takes any form."""

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass


# What published and own files contain beside tensors; nothing of it is executed by loading. DeiT's
# have an argparse.Namespace, training loops leave NumPy numbers, MMEngine's have its log buffers,
# which load as nothing.
SAFE_GLOBALS = (
    argparse.Namespace,
    np.array(0).__reduce__()[0],
    np.float64(0).__reduce__()[0],
    np.ndarray,
    np.dtype,
    *(type(np.dtype(kind)) for kind in "?bBhHiIlLqQefd"),
    *(
        (_Ignored, name)
        for name in (
            "mmengine.logging.history_buffer.HistoryBuffer",
            "builtins.getattr",
            "builtins.slice",
        )
    ),
)


class CheckpointError(InputError):
    """The file cannot be read, is not of an SR-ViT or ViT, or does not fit the model."""


def read(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Content of a checkpoint file; tensors on the CPU. Never executes code from the file.

    Raises:
        CheckpointError: There is no such file, it is damaged, or it holds code.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise CheckpointError(f"no checkpoint at {path}")
    try:
        if path.endswith(".safetensors"):
            return load_file(path)
        with torch.serialization.safe_globals(list(SAFE_GLOBALS)):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        name = re.search(r"GLOBAL (\S+)", str(error))
        reason = f"it holds objects that are not tensors ({name[1]})" if name else "it is damaged"
        raise CheckpointError(f"{path} was refused: {reason}") from error
    except (
        RuntimeError,
        EOFError,
        OSError,
        ValueError,
        zipfile.BadZipFile,
        SafetensorError,
    ) as error:
        raise CheckpointError(f"{path} is damaged or not a checkpoint file") from error
    if not isinstance(content, Mapping):
        raise CheckpointError(f"{path} holds a {type(content).__name__}, not weights by name")
    return content


def unwrap(content: Mapping[str, Any], use_ema: bool = True) -> tuple[StateDict, str]:
    """The state dict inside a checkpoint's content, and the key it was under, as " [key]".

    Raises:
        CheckpointError: There are no tensors under any known key.
    """
    keys = EMA_KEYS + RAW_KEYS if use_ema else RAW_KEYS + EMA_KEYS
    for key in keys:
        inner = content.get(key)
        if isinstance(inner, Mapping) and inner:
            return unwrap(inner, use_ema)[0], f" [{key}]"
    state = {name: value for name, value in content.items() if isinstance(value, Tensor)}
    if not state:
        raise CheckpointError(
            f"no tensors found; the top-level names are {shorten([str(k) for k in content])}"
        )
    return state, ""


def shorten(names: Iterable[str], limit: int = 8) -> str:
    """The first names, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
