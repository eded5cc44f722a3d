"""A terminal for a program under measurement: a pseudo-terminal, and the screen that its output makes.

The screen knows what Textual's driver sends (places, text, erasing); colours and modes are read over.
"""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rich.cells import cell_len

_TOKEN: Final = re.compile(
    r"\x1b\[([0-9;:?<=>]*)[ -/]*([@-~])"  # CSI
    r"|\x1b[\]P_^].*?(?:\x07|\x1b\\)"  # OSC, DCS, APC, PM
    r"|\x1b[()][A-Z0-9]|\x1b[=>78cDEHM]"
    r"|[\r\n\b\x07\x0e\x0f]"
    r"|[^\x1b\r\n\b\x07\x0e\x0f]+",
    re.DOTALL,
)
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Screen:
    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.lines = [[" "] * width for _ in range(height)]
        self._x = self._y = 0
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def row(self, y: int) -> str:
        return "".join(self.lines[y]).rstrip()

    def text(self) -> str:
        return "\n".join(self.row(y) for y in range(self.height))

    def feed(self, data: bytes) -> None:
        text, at = self._rest + self._decoder.decode(data), 0
        while match := _TOKEN.match(text, at):
            at = match.end()
            if match[2]:
                self._control(match[1], match[2])
            elif match[0][0] != "\x1b":
                self._put(match[0])
        self._rest = text[at:]

    def _control(self, given: str, what: str) -> None:
        numbers = [int(word or 0) for word in re.findall(r"\d*", given) if word] if given[:1] not in "?<=>" else []
        one = numbers[0] if numbers else 0
        match what:
            case "H" | "f":
                self._y = min(max(one, 1), self.height) - 1
                self._x = min(max(numbers[1] if len(numbers) > 1 else 1, 1), self.width) - 1
            case "C":
                self._x = min(self._x + max(one, 1), self.width - 1)
            case "J" if one == 2:
                self.lines = [[" "] * self.width for _ in range(self.height)]
            case "K" if not one:
                self.lines[self._y][self._x :] = [" "] * (self.width - self._x)

    def _put(self, text: str) -> None:
        if text == "\r":
            self._x = 0
        elif text == "\n":
            self._y = min(self._y + 1, self.height - 1)
        elif text.isprintable():
            for char in text:
                cells = 1 if char.isascii() else cell_len(char)
                if self._x < self.width and cells:
                    self.lines[self._y][self._x] = char
                    self.lines[self._y][self._x + 1 : self._x + cells] = [""] * (cells - 1)
                self._x += cells


class Program:
    """Runs in a terminal of 80 by 24; `with` ends it."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], *, width: int = 80, height: int = 24) -> None:
        self.screen = Screen(width, height)
        self.written = 0
        self.began = time.perf_counter()
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            size = {"COLUMNS": str(width), "LINES": str(height), "TERM": "xterm-256color"}
            os.execvpe(command[0], list(command), {**os.environ, **env, **size})
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str) -> float:
        """Seconds on the clock just before."""
        at = time.perf_counter()
        os.write(self._master, keys.encode())
        return at

    def until(self, condition: Callable[[Screen], object], what: str, seconds: float = 60.0) -> float:
        """Read until the screen is so; seconds on the clock then. Exits with the screen where it never is."""
        deadline = time.perf_counter() + seconds
        while not condition(self.screen):
            self._read(deadline - time.perf_counter())
            if time.perf_counter() > deadline:
                raise SystemExit(f"{what} did not come:\n{self.screen.text()}")
        return time.perf_counter()

    def watch(self, seconds: float) -> None:
        """Read what comes for so long."""
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            self._read(left)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], max(seconds, 0.0))[0]:
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # it ended
            return False
        self.written += len(data)
        self.screen.feed(data)
        return True

    def cpu(self) -> float:
        """Seconds of CPU so far, of all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self) -> float:
        """MB that are resident."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.kill(self.pid, signal.SIGTERM)
        deadline = time.monotonic() + 5
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            self._read(0.05)
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
        os.close(self._master)
