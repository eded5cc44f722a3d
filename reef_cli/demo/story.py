"""How the demo tells what happens: numbered steps in plain words, or one JSON line a step.

A step that fails is told and ends the story; nothing is shown that was not measured in this run.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from daemon.core.errors import ReefError
from reef_cli import output

Facts = dict[str, Any]

_WORTH_TELLING: Final = 3.0


class Story:
    """The story on stdout: text for a person, or JSON lines."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._number = 0

    def step(self, name: str, title: str, work: Callable[[], Facts]) -> Facts | None:
        """One step; None when it failed, which has been told."""
        self._number += 1
        self.text(output.bold(f"{self._number}  {title}"))
        started = time.monotonic()
        try:
            facts = work()
        except ReefError as error:
            self._failed(name, error)
            return None
        seconds = time.monotonic() - started
        if self._as_json:
            output.jsonl({"step": name, "ok": True, "seconds": round(seconds, 1), **facts})
        if seconds >= _WORTH_TELLING:
            self.text(output.dim(f"   {seconds:.0f} s"))
        self.text("")
        return facts

    def _failed(self, name: str, error: ReefError) -> None:
        if self._as_json:
            output.jsonl({"step": name, "ok": False, **error.envelope()})
        self.text(f"   failed: {output.visible(error.message)}")
        if error.hint:
            self.text(f"   hint: {output.visible(error.hint)}")
        self.text("")

    def text(self, line: str) -> None:
        """A line for a person; foreign text in it has been through `output.visible`."""
        if not self._as_json:
            output.line(line)

    def say(self, line: str) -> None:
        """A line inside a step, made inert."""
        self.text(f"   {output.visible(line, keep='')}")

    def quote(self, label: str, text: str, width: int = 100) -> None:
        """Foreign words on one line."""
        self.say(f"{label} {output.one_line(text, width)}")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns as wide as their longest cell."""
        widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
        for number, row in enumerate((head, *rows)):
            line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            self.text(f"   {output.bold(line) if number == 0 else output.visible(line)}")

    def end(self, result: Facts) -> None:
        """The last line of the JSON form."""
        if self._as_json:
            output.jsonl(result)
