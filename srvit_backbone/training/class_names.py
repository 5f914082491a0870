"""Classes of a checkpoint against those of the data: as many, but others, is the mistake to see."""

from collections.abc import Sequence


def class_change(saved: Sequence[str] | None, own: Sequence[str]) -> str:
    """What differs between the class names in a file and the data's, "" if nothing or not known.

    The order counts: a head's outputs have no names of their own.
    """
    if not saved or not own or list(saved) == list(own):
        return ""
    if len(saved) != len(own):
        return f"{len(saved)} classes in the file, {len(own)} in the data"
    pairs = [(old, new) for old, new in zip(saved, own, strict=True) if old != new]
    old, new = pairs[0]
    more = f" and {len(pairs) - 1} more" if len(pairs) > 1 else ""
    return f"{old} in the file is {new} in the data{more}"
