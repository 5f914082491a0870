"""What the values of masks mean: which ids or colours are which class, and which are no label."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from srvit_backbone.errors import InputError
from srvit_backbone.own_data.files import read_text

IGNORED = 255  # what losses and measures of all frameworks leave out
MOST = 255  # classes, for ids are kept in 8 bits beside IGNORED
Colour = tuple[int, int, int]


@dataclass(frozen=True)
class MaskClasses:
    """Classes of a set of masks.

    Attributes:
        names: In the order of the trained ids 0, 1, ...
        ids: Value in a mask -> trained id, or IGNORED.
        colours: Colour in a mask -> trained id, or IGNORED; empty where masks hold ids.
        source: What messages call this.
    """

    names: tuple[str, ...]
    ids: dict[int, int]
    colours: dict[Colour, int]
    source: str = "SEG_CLASSES"

    @classmethod
    def of_names(cls, names: list[str], first: int = 0, ignore: tuple[int, ...] = (IGNORED,)):
        """Ids counted from ``first`` in the order of the names.

        Raises:
            InputError: A name is missing or repeated, or there are too many.
        """
        names = [name.strip() for name in names]
        _check_names(names)
        ids = dict.fromkeys(ignore, IGNORED)
        ids |= {first + index: index for index in range(len(names))}
        return cls(tuple(names), ids, {})

    @classmethod
    def read(cls, text: str) -> "MaskClasses":
        """From "road,car,person", or from the name of a yaml or json file.

        A file names each class with its id, its ids or its colour, and what is no label::

            classes:
              road: 0
              car: [1, 2]                    # two ids, one class
              person: {color: [64, 64, 0]}   # or "#404000"
            ignore: [11, 255]                # ids or colours; 255 by default

        Raises:
            InputError: The file is not there or says something else.
        """
        if text.lower().endswith((".yaml", ".yml", ".json")):
            return cls._read_file(Path(text))
        return cls.of_names(text.split(","))

    @classmethod
    def _read_file(cls, path: Path) -> "MaskClasses":
        try:
            content = yaml.safe_load(read_text(path))  # json is yaml
        except yaml.YAMLError as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{path} is neither yaml nor json: {reason}") from None
        classes = content.get("classes", content) if isinstance(content, dict) else content
        if isinstance(classes, list):
            classes = {str(name): index for index, name in enumerate(classes)}
        if not isinstance(classes, dict) or not classes:
            raise InputError(f"{path} names no classes: write classes: and name: id, a line each")
        settings = content if isinstance(content, dict) and "classes" in content else {}
        named = {str(n): v for n, v in classes.items() if settings or str(n) != "ignore"}
        _check_names(list(named))
        ids: dict[int, int] = {}
        colours: dict[Colour, int] = {}

        def add(value: Any, index: int, name: str) -> None:
            target: dict = ids
            if isinstance(value, bool) or not isinstance(value, int):
                value, target = _colour(value, path, name), colours
            if target.get(value, index) != index:
                raise InputError(f"{path}: {value} is given to two classes")
            target[value] = index

        for index, (name, value) in enumerate(named.items()):
            for single in _values(value, path, name):
                add(single, index, name)
        ignored = settings.get(
            "ignore", classes.get("ignore", [IGNORED]) if not settings else [IGNORED]
        )
        for single in ignored if isinstance(ignored, list) else [ignored]:
            add(single, IGNORED, "ignore")
        return cls(tuple(named), ids, colours, str(path))

    def encode(self, mask: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        """A mask as its file has it -> trained ids (H, W), uint8, and the values that are none.

        Args:
            mask: Ids (H, W), or colours (H, W, 3) in RGB.
        """
        if mask.ndim == 3:
            packed = mask.astype(np.int64) @ (65536, 256, 1)
            table = {r * 65536 + g * 256 + b: index for (r, g, b), index in self.colours.items()}
        else:
            packed, table = mask.astype(np.int64), self.ids
        values, inverse = np.unique(packed, return_inverse=True)
        trained = np.array([table.get(int(v), IGNORED) for v in values], np.uint8)
        unknown = [int(v) for v in values if int(v) not in table]
        if mask.ndim == 3:
            colours = [(v >> 16, v >> 8 & 255, v & 255) for v in unknown]
            return trained[inverse.reshape(packed.shape)], colours
        return trained[inverse.reshape(packed.shape)], unknown


def _check_names(names: list[str]) -> None:
    if not names or not all(names):
        raise InputError(f"a class without a name in {', '.join(names) or 'nothing'}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"classes are named twice: {', '.join(twice)}")
    if len(names) > MOST:
        raise InputError(f"{len(names)} classes: more than {MOST} cannot be told from 'no label'")


def _values(value: Any, path: Path, name: str) -> list[Any]:
    """The ids or colours of a class."""
    if isinstance(value, dict):
        known = {"id", "ids", "color", "colour", "colors", "colours"}
        if len(value) != 1 or not known & value.keys():
            raise InputError(f"{path}: {name} must have one of id, ids, color, colors")
        ((key, inner),) = value.items()
        return list(inner) if key in ("ids", "colors", "colours") else [inner]
    if isinstance(value, list) and all(isinstance(v, int) for v in value):
        return value
    return [value]


def _colour(value: Any, path: Path, name: str) -> Colour:
    if isinstance(value, str) and re.fullmatch(r"#?[0-9a-fA-F]{6}", value):
        code = int(value.lstrip("#"), 16)
        return code >> 16, code >> 8 & 255, code & 255
    if isinstance(value, list) and len(value) == 3 and all(
        isinstance(v, int) and 0 <= v <= 255 for v in value
    ):  # fmt: skip
        return value[0], value[1], value[2]
    raise InputError(f"{path}: {name}: {value!r} is no id, [red, green, blue] or '#rrggbb'")
