"""Progress of what takes a while to write."""

import sys
from collections.abc import Iterator


def progress(count: int, what: str) -> Iterator[int]:
    """Count up to ``count``, saying so on one line."""
    for index in range(count):
        yield index
        if sys.stdout.isatty() or index + 1 == count:
            print(
                f"\r{what}: {index + 1} of {count}",
                end="\n" if index + 1 == count else "",
                flush=True,
            )
