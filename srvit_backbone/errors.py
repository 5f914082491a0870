"""Errors that are the user's to mend, and how a command-line program ends on one."""

import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from srvit_backbone.quiet import silence_known_warnings

# In front of a message that comes with the traceback of another process.
_OWN_ERROR = re.compile(r"^srvit_backbone\.[\w.]+Error: ")


class InputError(ValueError):
    """A config, flag, data set, image or folder is not usable; the message says what to do."""


def run_program(main: Callable[..., None], *arguments: Any) -> None:
    """Run a program; an InputError becomes one line and exit status 1.

    So does an InputError in one of several training processes.
    """
    from torch.multiprocessing import ProcessRaisedException

    silence_known_warnings()
    try:
        main(*arguments)
    except InputError as error:
        fail(error)
    except ProcessRaisedException as error:
        if not _OWN_ERROR.match(_last_line(error)):
            raise
        fail(error)


def fail(error: Exception) -> NoReturn:
    """Print an error as one line and exit with status 1."""
    sys.stdout.flush()
    sys.exit(f"error: {_OWN_ERROR.sub('', _last_line(error))}")


def _last_line(error: Exception) -> str:
    # From another process it arrives with that process's traceback in front.
    return str(error).strip().splitlines()[-1]
