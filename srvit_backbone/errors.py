"""Errors that are the user's to mend, and how a command-line program ends on one."""

import logging
import sys
from collections.abc import Callable
from typing import NoReturn


class InputError(ValueError):
    """A config, flag, data set, image or folder is not usable; the message says what to do."""


def run_program(main: Callable[[], None], *errors: type[Exception]) -> None:
    """Run a program; an InputError or one of ``errors`` becomes one line and exit status 1."""
    try:
        main()
    except (InputError, *errors) as error:
        fail(error)


def fail(error: Exception) -> NoReturn:
    """Print an error as one line and exit with status 1."""
    # From a data-loading worker it arrives with that worker's traceback in front.
    line = str(error).strip().splitlines()[-1]
    logging.shutdown()
    sys.exit(f"error: {line.removeprefix(f'{__name__}.InputError: ')}")
