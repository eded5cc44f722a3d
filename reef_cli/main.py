"""The command `reef`: finds the command, runs it, and is the one place where its errors become an exit code.

Dispatch looks at the words before it imports anything: hot commands run on a few standard modules (`reef status` within
60 ms of bare Python), everything else through Typer, which sees only the command that was asked for.
"""

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from daemon.core.errors import ExitCode, ReefError, UsageError
from daemon.core.version import __version__
from reef_cli import diagnostics, output
from reef_cli.commands import COMMANDS, Command, Group, find
from reef_cli.parameters import bind

#: What the disk or its owner is to blame for, not a bug.
_OUTSIDE = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EACCES)
_COMPLETION = "_REEF_COMPLETE"  # Typer's variable for the shells' completion functions
_BROKEN_PIPE = 141  # 128 + SIGPIPE: what a shell sees of a program whose reader left


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code (`daemon.core.errors.ExitCode`)."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    as_json = "--json" in words
    try:
        return _dispatch(words)
    except ReefError as error:
        return diagnostics.failure(error, as_json=as_json)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except output.ReaderLeft:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the interpreter's last flush has somewhere to go
        return _BROKEN_PIPE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _OUTSIDE:
            where = f": {error.filename}" if error.filename else ""
            return diagnostics.failure(ReefError(f"{error.strerror}{where}", hint="reef doctor"), as_json=as_json)
        from daemon.core.paths import home

        return diagnostics.unexpected(error, as_json=as_json, log=str(home().log))


def _open_streams() -> None:
    """One that is closed is as good as /dev/null."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r+"))


def _dispatch(words: list[str]) -> int:
    if _COMPLETION in os.environ or (words and words[0] in ("--install-completion", "--show-completion")):
        return _typer(words)
    if not words and sys.stdin.isatty() and sys.stdout.isatty():
        words = ["tui"]
    if not words or words[0] in ("-h", "--help", "help"):
        _help()
        return ExitCode.OK if words else ExitCode.USAGE
    if words[0] in ("-V", "--version"):
        output.line(f"reef {__version__}")
        return ExitCode.OK
    if words[0] not in COMMANDS:
        raise _unknown(words[0])
    command = find(words)
    if command is not None and command.hot:
        function = load(command)
        values = bind(function, words[1:])
        if values is not None:
            return int(function(**values) or 0)
    return _typer(words)


def load(command: Command) -> Any:
    """The function behind a command."""
    module, _, name = command.target.partition(":")
    return getattr(import_module(f"reef_cli.commands.{module}"), name)


def _typer(words: list[str]) -> int:
    from reef_cli.app import run

    return run(words)


def _unknown(word: str) -> UsageError:
    import difflib

    near = difflib.get_close_matches(word, COMMANDS, n=1)
    return UsageError(f"no command is called {word!r}", hint=f"reef {near[0]}" if near else "reef --help")


def _help() -> None:
    output.line("Usage: reef COMMAND [ARGUMENTS]\n")
    output.line("Records what your coding agents do, takes your feedback, and makes them better.\n")
    output.line(output.bold("Commands"))
    for name, entry in COMMANDS.items():
        verbs = f"{name} {'|'.join(entry.verbs)}" if isinstance(entry, Group) else name
        output.line(f"  {verbs:<22}{entry.summary}" if len(verbs) < 22 else f"  {verbs}\n{'':24}{entry.summary}")
    output.line("\nEvery command takes --json and --help.")
    output.line("Also: --version, --install-completion, --show-completion.")
    output.line('Start here: reef demo, or eval "$(reef env)" and then your own agent.')


if __name__ == "__main__":
    sys.exit(main())
