"""A command of `reef`, run beside the dashboard: what it says, line by line; leaving ends it.

It has no terminal and no input: whatever asks first is refused by the command itself, with the flag that says yes.
"""

import asyncio
import codecs
import os
import shlex
import signal
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from daemon.core.paths import Home
from reef_cli.tui.screens.help import Pages
from reef_cli.tui.text import wrapped
from reef_cli.tui.window import Row

_LINES: Final = 2000
#: So much of a line is shown.
_LONGEST: Final = 4000
_UPDATE_SECONDS: Final = 0.1


class CommandRun(Pages[None]):
    def __init__(self, home: Home, words: Sequence[str]) -> None:
        super().__init__(f"$ reef {shlex.join(words)}")
        self._home = home
        self._words = words
        self._said: deque[str] = deque([""], maxlen=_LINES)
        self._ended = ""
        self._waits = False
        self.list.follow = True

    def on_mount(self) -> None:
        super().on_mount()
        self.run_worker(self._run())

    def rows(self, width: int) -> Sequence[Row]:
        lines = [part for line in self._said for part in wrapped(line[:_LONGEST], width)]
        found = [Row(str(n), (line,)) for n, line in enumerate(lines)]
        return [*found, Row("end", (self._ended or "…",), "dim")]

    async def _run(self) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "reef_cli.main", *self._words,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "REEF_HOME": str(self._home.root), "NO_COLOR": "1"}, start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        try:
            while chunk := await process.stdout.read(65536):
                self._take(decode(chunk))
            self._ended = f"exit code {await process.wait()}"
            self._update()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                await process.wait()

    def _take(self, text: str) -> None:
        first, *rest = text.split("\n")
        self._said[-1] = (self._said[-1] + first)[-_LONGEST * 4 :]
        self._said.extend(rest)
        if not self._waits:
            self._waits = True
            self.set_timer(_UPDATE_SECONDS, self._update)

    def _update(self) -> None:
        self._waits = False
        self.draw()
