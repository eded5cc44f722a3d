"""How a program of ours becomes another one, which must find everything as we found it."""

import os
import signal
from collections.abc import Mapping
from typing import Final, NoReturn

#: Python ignores these in itself, whatever they were before, and what is ignored stays so through exec: a shell
#: script's `yes | head -1` would then complain.
_OURS: Final = (signal.SIGPIPE, signal.SIGXFSZ)


def become(program: str, words: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Raises OSError where it cannot be run."""
    for ignored in _OURS:
        signal.signal(ignored, signal.SIG_DFL)
    os.execve(program, words, environment)
