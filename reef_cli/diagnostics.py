"""The only writer of stderr: what is not the answer. Notes, progress, errors.

The error form here is one of the three edges where errors are rendered. A message says what happened, the hint is the
next command; a traceback appears only under ``REEF_DEBUG=1``.
"""

import json
import os
import sys
from contextlib import suppress

from daemon.core.errors import ExitCode, ReefError, UsageError
from reef_cli.output import size, visible

_TELL_EVERY = 10  # percent, where no terminal redraws the line


def say(text: str) -> None:
    """One line for the person who waits."""
    _write(visible(text) + "\n")


def ask(text: str) -> None:
    """A question; the answer is typed on the same line."""
    _write(visible(text))


def failure(error: ReefError, *, as_json: bool) -> ExitCode:
    """Tell an error in the form that was asked for, and say which exit code it has."""
    if as_json:
        _write(json.dumps(error.envelope()) + "\n")
    else:
        say(f"error: {error.message}")
        if error.hint:
            say(f"  hint: {error.hint}")
    return error.exit_code


def unexpected(error: Exception, *, as_json: bool, log: str) -> ExitCode:
    """A bug of ours: short, with where to look."""
    if os.environ.get("REEF_DEBUG"):
        import traceback

        _write(visible("".join(traceback.format_exception(error))))
    wrapped = ReefError(
        f"unexpected {type(error).__name__}: {error}",
        hint=f"REEF_DEBUG=1 shows where; the daemon's log is {log}",
    )
    return failure(wrapped, as_json=as_json)


def watched() -> bool:
    """Whether a person can be asked."""
    return all(one is not None and one.isatty() for one in (sys.stdin, sys.stderr))  # None: closed by the caller


def confirmed(question: str, *, yes: bool) -> bool:
    """Whether a person means it: ``yes`` was given, or they type the word. Enter alone never confirms.

    Raises UsageError where nobody can be asked.
    """
    if yes:
        return True
    if not watched():
        raise UsageError(f"nobody is here to ask: {question}", hint="add --yes")
    _write(visible(f"{question} Type yes: "))
    return sys.stdin.readline().strip().lower() == "yes"


class Progress:
    """Progress of one piece of work with phases; bytes done of total. A line that redraws, or one every tenth."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._told: tuple[str, int] | None = None

    def update(self, phase: str, done: int, total: int | None) -> None:
        percent = min(100, done * 100 // total) if total else 0
        step = (phase, percent if self._live else percent // _TELL_EVERY)
        if step == self._told and total:
            return
        if self._told is not None and self._live and self._told[0] != phase:
            _write("\n")
        self._told = step
        amount = f" {percent:3d} %  {size(done)} of {size(total)}" if total else f" {size(done)}" if done else ""
        text = visible(f"{phase}{amount}", keep="")
        _write(f"\r\x1b[K{text}" if self._live else f"{text}\n")

    def close(self) -> None:
        if self._live and self._told is not None:
            _write("\n")
        self._told = None


def _write(text: str) -> None:
    if sys.stderr is None:  # closed by the caller
        return
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"  # the dashboard's stand-in for it has none
    with suppress(BrokenPipeError):  # nobody reads it
        sys.stderr.write(text.encode(encoding, "replace").decode(encoding, "replace"))
        sys.stderr.flush()
