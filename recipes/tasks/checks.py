"""Whether an answer passes a task's check: a named form, a regular expression, or a command.

A check can be slow or hostile, by mistake or through what a model wrote: it costs its time limit and then fails, and
the gate goes on. Nothing here may run a person's expression in this process, or a command outside
`recipes.tasks.confine`.

Tasks are held out by construction: the stream that recipes learn from leaves out every exchange whose prompt is a
task's (`recipes.base.Stream`), so what a check measures was never trained on.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from daemon.core.errors import UsageError
from daemon.core.learning import Check
from recipes.base import Answer
from recipes.tasks import confine, forms

#: An expression that needs longer than this backtracks without end. Of the processor, not by the clock: a job has the
#: lowest priority, so that beside busy programs an ordinary expression may take as long.
EXPRESSION_SECONDS: Final = 2.0
_STALLED_SECONDS: Final = 600.0
COMMAND_SECONDS: Final = 20.0
#: Beyond the command's own time: starting, and killing what it left.
_SLACK_SECONDS: Final = 15.0
_LONGEST: Final = 2000
_SEARCH: Final = (
    "import re, signal, sys\nsignal.setitimer(signal.ITIMER_PROF, float(sys.argv[2]))\n"
    "text = sys.stdin.buffer.read().decode()\nsys.exit(0 if re.search(sys.argv[1], text, re.M) else 1)"
)


def validate(check: Check) -> None:
    """Raises UsageError, naming the value, for a check that could never be made."""
    kinds = [kind for kind in ("form", "expression", "command") if getattr(check, kind) is not None]
    if len(kinds) != 1:
        said = f"has {' and '.join(kinds)}" if kinds else "says nothing"
        raise UsageError(f"the check {said}", hint="give one of: a form, an expression, a command")
    value: str = getattr(check, kinds[0])
    if len(value) > _LONGEST or "\0" in value:
        raise UsageError(f"the {kinds[0]} {value[:40]!r}… cannot be used", hint=f"at most {_LONGEST} characters")
    if check.form is not None:
        forms.form(check.form)
    elif check.expression is not None:
        _compiles(check.expression)
    else:
        argv(value)


def passes(check: Check, answer: Answer, prompt: str = "") -> bool:
    """Whether the answer passes. ``prompt`` is there for checks to come that compare."""
    return failure(check, answer) is None


def failure(check: Check, answer: Answer) -> str | None:
    """Why the answer does not pass, in words; None when it does.

    A form judges whole answers only (`recipes.tasks.forms`); expressions and commands see the text as far as it goes.
    """
    if check.form is not None:
        if forms.passes(check.form, answer.text, ended=answer.ended):
            return None
        return f"not {check.form}" if answer.ended else "cut off"
    if check.expression is not None:
        return _searched(check.expression, answer.text)
    if check.command is not None:
        return _ran(argv(check.command), answer.text)
    raise UsageError("the check says nothing", hint="give one of: a form, an expression, a command")


def argv(command: str) -> list[str]:
    """A command's words, split as a shell would and nothing more. Raises UsageError."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the command {command!r} cannot be split into words: {error}") from None
    if not words:
        raise UsageError("the command is empty", hint="for example --command 'python3 answer.txt'")
    return words


def _compiles(expression: str) -> None:
    try:
        re.compile(expression, re.M)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{expression!r} is not a regular expression: {error}") from None


def _searched(expression: str, text: str) -> str | None:
    """In a process of its own: Python's ``re`` cannot be interrupted, and one bad pattern would hang the gate."""
    late = f"the expression took longer than {EXPRESSION_SECONDS:g} s"
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _SEARCH, expression, str(EXPRESSION_SECONDS)],
            input=text.encode("utf-8", "replace"), capture_output=True, timeout=_STALLED_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return late
    if done.returncode == -signal.SIGPROF:
        return late
    if done.returncode in (0, 1) and not done.stderr:
        return None if done.returncode == 0 else "the expression was not found"
    return "the expression failed"


def _ran(words: list[str], text: str) -> str | None:
    if shutil.which(words[0]) is None and "/" not in words[0]:
        return f"there is no command {words[0]!r}"
    with tempfile.TemporaryDirectory(prefix="reef-check-", ignore_cleanup_errors=True) as made:
        directory = Path(made)
        answer = directory / "answer.txt"
        answer.write_text(text, "utf-8", errors="replace")
        if os.geteuid() == 0:
            for path in (directory, answer):
                shutil.chown(path, confine.NOBODY, confine.NOBODY)
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": made, "TMPDIR": made}
        with answer.open("rb") as stdin:
            try:
                done = subprocess.run(
                    [sys.executable, "-I", "-S", confine.__file__, str(COMMAND_SECONDS), *words],
                    cwd=made, env=environment, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    timeout=COMMAND_SECONDS + _SLACK_SECONDS, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return f"the command took longer than {COMMAND_SECONDS:g} s"
    return _said(done.returncode, words[0])


def _said(code: int, name: str) -> str | None:
    if code == 0:
        return None
    if code == confine.OUT_OF_TIME:
        return f"the command took longer than {COMMAND_SECONDS:g} s"
    if code == confine.NOT_STARTED:
        return f"{name!r} could not be started"
    return f"the command's exit status was {code}"
