"""Answers while they come: each read by a thread of its own from ``GET /reef/live/{receipt}``, taken by the screen.

The thread must never touch a widget; it says that there is more, once, until that is taken.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from daemon.core.client import Client, segment
from daemon.core.errors import NotFound, ReefError

#: Characters shown of each part: its end is what is new.
_SHOWN: Final = 4000
_PAUSE_SECONDS: Final = 0.5


class Live:
    """``call`` is a row of ``/reef/live``; ``tell`` may be called from any thread."""

    def __init__(self, client: Client, call: Mapping[str, Any], tell: Callable[[], object]) -> None:
        self.call = call
        self.ended = False
        self._client = client
        self._tell = tell
        self._parts: list[tuple[str, list[str]]] = []
        self._lock = threading.Lock()
        self._told = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reef-live", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """The thread ends with the next event, or with the program."""
        self._stopped.set()

    def take(self) -> list[tuple[str, str]]:
        """What has come so far: kind (text, thinking or tool) and text of each part."""
        with self._lock:
            self._told = False
            return [(kind, "".join(texts)[-_SHOWN:]) for kind, texts in self._parts]

    def _run(self) -> None:
        with suppress(NotFound):  # it is over, or the daemon is another one
            while not self._stopped.is_set() and not self._read():
                self._stopped.wait(_PAUSE_SECONDS)
        self.ended = True
        self._say()

    def _read(self) -> bool:
        """From the beginning; False where it was broken off before its end. Raises NotFound."""
        with self._lock:
            self._parts = []
        try:
            for name, data in self._client.events(f"/reef/live/{segment(self.call['receipt'])}"):
                if name == "end" or self._stopped.is_set():
                    return True
                if name == "text":
                    self._add(str(data["kind"]), str(data["text"]))
        except NotFound:
            raise
        except (ReefError, OSError, ValueError):
            pass  # the banner says what it is
        return False

    def _add(self, kind: str, text: str) -> None:
        with self._lock:
            if not self._parts or self._parts[-1][0] != kind:
                self._parts.append((kind, []))
            self._parts[-1][1].append(text)
        self._say()

    def _say(self) -> None:
        with self._lock:
            told, self._told = self._told, True
        if not told:
            self._tell()


class Calls:
    """Those of one session that are being answered."""

    def __init__(self, client: Client, tell: Callable[[], object]) -> None:
        self._client = client
        self._tell = tell
        self._running: dict[str, Live] = {}

    @property
    def running(self) -> list[Live]:
        return list(self._running.values())

    def begin(self, call: Mapping[str, Any]) -> None:
        """Unless it is known."""
        receipt = str(call["receipt"])
        if receipt not in self._running:
            self._running[receipt] = Live(self._client, call, self._tell)
            self._running[receipt].start()

    def now(self, calls: Iterable[Mapping[str, Any]]) -> None:
        """These are being answered; of the others those are over that have ended."""
        known = {str(call["receipt"]): call for call in calls}
        self.drop(receipt for receipt, live in self._running.items() if live.ended and receipt not in known)
        for call in known.values():
            self.begin(call)

    def drop(self, receipts: Iterable[str]) -> None:
        """They are recorded, or nobody looks any more."""
        for receipt in list(receipts):
            if (live := self._running.pop(receipt, None)) is not None:
                live.stop()
