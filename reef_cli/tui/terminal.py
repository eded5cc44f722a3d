"""What the terminal sends, as keys, whatever it is: a stray byte must end nothing, and a paste must press no key.

Textual's own reader ends the program on bytes that are no UTF-8 and on numbers of keys that there are not, takes what
follows an escape character in a paste for keys, hears nothing any more after a paste without an end, and turns without
rest where the terminal has gone.
"""

import os
import re
import selectors
from codecs import getincrementaldecoder
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOWrapper
from time import monotonic
from typing import IO, Any, Final, cast

from textual import events
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.keys import Keys
from textual.message import Message

_START, _END = "\x1b[200~", "\x1b[201~"
#: What a terminal answers to questions that nobody here has asked.
_ANSWER: Final = re.compile("\x1b[P\\]X^_][^\x1b\x07]*(?:\x07|\x1b\\\\)|\x1b\\[[?>=][\\d;]*[A-Za-z]")
#: A paste that has come no further for so long has lost its end.
_PASTE_SECONDS: Final = 1.0
_TICK_SECONDS: Final = 0.1


class Keyboard(XTermParser):
    """Text from the terminal as events."""

    def __init__(self) -> None:
        super().__init__()
        self._pasting = False
        self._rest = ""  # of what came last: it may begin a mark that goes on
        self._heard = 0.0

    def feed(self, data: str) -> Iterable[Message]:
        self._heard = monotonic()
        while data:
            sent, data = self._pasted(data) if self._pasting else self._typed(data)
            if sent:
                yield from super().feed(sent)

    def tick(self) -> Iterable[Message]:
        if self._pasting and monotonic() - self._heard > _PASTE_SECONDS:
            self._pasting, self._rest = False, ""
            yield from super().feed(_END)
        yield from super().tick()

    def _typed(self, data: str) -> tuple[str, str]:
        """Up to where a paste begins, and what comes then. It is not held back: Esc alone is a key."""
        data = _ANSWER.sub("", data)
        seen = self._rest + data
        at = seen.find(_START)
        if at < 0:
            self._rest = seen[1 - len(_START) :]
            return data, ""
        self._pasting, self._rest = True, ""
        cut = at + len(_START) - len(seen) + len(data)
        return data[:cut], data[cut:]

    def _pasted(self, data: str) -> tuple[str, str]:
        """Up to where the paste ends, its other escape characters spelled out."""
        text, end, after = (self._rest + data).partition(_END)
        self._pasting, self._rest = not end, ""
        if not end:
            self._rest = next((_END[:n] for n in range(len(_END) - 1, 0, -1) if text.endswith(_END[:n])), "")
            text = text.removesuffix(self._rest)
        return text.replace("\x1b", "\\x1b") + end, after

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        try:
            keys = list(super()._sequence_to_key_events(sequence, alt))
        except (ValueError, OverflowError):  # there is no such character
            keys = [events.Key(Keys.Ignore, sequence)]
        return [events.Key(Keys.Ignore, sequence) if _lone(key.character) else key for key in keys]


class _Screen:
    """Where the terminal has gone, what is written is lost: Textual's writer would end, and what waits for it hang."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()


class Terminal(LinuxDriver):
    """Textual's driver with a reader that nothing ends but the end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert self._file is not None  # there is a terminal: the command has looked
        self._file = cast(TextIOWrapper, _Screen(self._file))

    def run_input_thread(self) -> None:
        keyboard, decode = Keyboard(), getincrementaldecoder("utf-8")("replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_TICK_SECONDS):
                    data = self._read()
                    if not data:
                        self._app.call_later(self._app.exit)
                        return
                    for event in keyboard.feed(decode(data)):
                        self.process_message(event)
                for event in keyboard.tick():
                    self.process_message(event)

    def _read(self) -> bytes:
        """Empty where the terminal has gone."""
        try:
            return os.read(self.fileno, 4096)
        except OSError:
            return b""


def _lone(character: str | None) -> bool:
    """Half of a surrogate pair: no terminal can show it, no file keep it."""
    return character is not None and len(character) == 1 and "\ud800" <= character <= "\udfff"
