"""The daemon's events, read by a thread of its own and handed over in bunches; it reconnects by itself.

The thread must never touch a widget, and never end before it is told to: a dashboard that stands still looks like a
daemon that does nothing.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from textual.message import Message

from daemon.core.client import Client
from daemon.core.errors import ReefError
from reef_cli.tui.messages import Connected, Event, Heard, Lost

_PAUSES: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
#: More events than this between two updates are not worth telling one by one: the oldest go.
_KEPT: Final = 5000


class Feed:
    """``tell`` may be called from any thread (`textual.message_pump.MessagePump.post_message`)."""

    def __init__(self, client: Client, tell: Callable[[Message], object]) -> None:
        self._client = client
        self._tell = tell
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()
        self._told = False
        self._doubted = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reef-feed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._client.break_off()

    def doubt(self) -> None:
        """Somebody's request found no daemon: look whether it still takes connections. A stream that was open before
        its socket's file was removed says nothing of that."""
        self._doubted = True
        self._client.break_off()

    def take(self) -> list[Event]:
        """What came since the last time."""
        with self._lock:
            events, self._told = list(self._events), False
            self._events.clear()
        return events

    def _run(self) -> None:
        tries = 0
        while not self._stopped.is_set():
            connected, lost = self._read()
            if self._stopped.is_set():
                return
            doubted, self._doubted = self._doubted and connected, False
            if not doubted:
                self._tell(lost)
            if not doubted or tries:  # a daemon that is doubted again and again is not asked without a rest
                self._stopped.wait(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries = tries + 1 if doubted or not connected else 1

    def _read(self) -> tuple[bool, Lost]:
        """Until the stream ends: whether there was one, and why it ended."""
        connected = False
        try:
            for name, data in self._client.events("/reef/events"):
                if self._stopped.is_set():
                    break
                if not connected:  # the first one comes at once: the engines' state
                    connected = True
                    self._tell(Connected())
                elif name == "missed":
                    self._tell(Connected())  # whatever is shown may be old
                self._add(Event(name, data))
            reason, running = ("the daemon stopped", False) if connected else ("what answers is no daemon", True)
        except ReefError as error:
            reason = error.message
            running = not isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError)
        except (OSError, ValueError) as error:  # cut off inside a line
            reason, running = f"the daemon broke off: {error}", True
        return connected, Lost(reason, running=running)

    def _add(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)
            told, self._told = self._told, True
        if not told:
            self._tell(Heard())
