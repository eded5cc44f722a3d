"""Feedback that no daemon has confirmed yet: kept in the home until one has, whatever is killed meanwhile.

A file an entry (0600, on disk before `put` returns), sent oldest first. A report has its id before it is sent, and the
daemon stores an id once: what was sent and whose answer was lost is sent again, and not doubled. An entry goes only
once the daemon has answered all of it, so none may ever be changed in what it says after `put`.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from daemon.core.client import Client
from daemon.core.errors import NotFound, ReefError, Unreachable
from daemon.core.ids import new_id
from daemon.core.locks import locked, open_lock, try_lock
from daemon.core.paths import Home, private_directory, sync_folder, write_private
from reef_cli import diagnostics, output

_LOOKED_AT: Final = 50
#: As many as the daemon takes at once.
_PINNED_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of one answer; without a ``receipt`` of the session's last one when the entry was made."""

    scenario: str
    session: str
    receipt: str | None
    score: float | None = None
    feedback: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=lambda: new_id("rep"))


@dataclass(frozen=True, slots=True)
class Entry:
    """What one key press says: reports, ids of reports that are taken back, or sessions that are golden from now on, or
    (not ``pinned``) no longer are."""

    reports: tuple[Report, ...] = ()
    undo: tuple[str, ...] = ()
    at_ns: int = field(default_factory=time.time_ns)
    pins: tuple[str, ...] = ()
    pinned: bool = True


@dataclass(frozen=True, slots=True)
class Sent:
    """What the daemon said to an entry: the reports it has, each with its receipt, those taken back, sessions pinned or
    no longer, and refusals."""

    stored: tuple[Report, ...] = ()
    undone: tuple[Mapping[str, Any], ...] = ()
    refused: tuple[tuple[str, ReefError], ...] = ()
    pins: tuple[str, ...] = ()


class Outbox:
    """Several processes may use one home's outbox at once; one at a time sends."""

    def __init__(self, home: Home) -> None:
        self._place = home.outbox
        self._last = 0

    def put(self, entry: Entry) -> None:
        """Durable when this returns. Raises ReefError where the disk does not take it."""
        try:
            private_directory(self._place)
            self._last = max(time.time_ns(), self._last + 1)
            write_private(self._place / f"{self._last:020d}-{os.getpid()}.json", _encoded(entry))
            sync_folder(self._place)
        except OSError as error:
            raise ReefError(f"cannot keep it in {self._place}: {error.strerror}", hint="reef doctor") from error

    def waiting(self) -> list[Entry]:
        """Oldest first."""
        return [entry for path in self._paths() if (entry := _read(path)) is not None]

    def flush(self, client: Client, tell: Callable[[Sent], object]) -> None:
        """Send what waits and tell of each entry what became of it. Raises what stopped it, with the rest still there:
        Unreachable, and what the daemon cannot do just now."""
        if not self._paths():
            return
        with locked(self._lock):
            self._send_all(client, tell)

    def deliver(self, client: Client) -> list[Sent]:
        """The same for a command that has other things to do: leaves it to whoever is sending, raises nothing."""
        sent: list[Sent] = []
        try:
            handle = open_lock(self._lock)
        except OSError as error:
            diagnostics.say(f"feedback waits in {self._place}, which cannot be changed: {error.strerror}")
            return sent
        try:
            if try_lock(handle):
                self._send_all(client, sent.append)
        except ReefError as error:
            diagnostics.say(f"feedback still waits in {self._place}: {error.message}")
        finally:
            os.close(handle)
        return sent

    @property
    def _lock(self) -> Path:
        return self._place / "lock"

    def _paths(self) -> list[Path]:
        return sorted(self._place.glob("[0-9]*.json"))

    def _send_all(self, client: Client, tell: Callable[[Sent], object]) -> None:
        for path in self._paths():
            if (entry := _read(path)) is not None:
                try:
                    sent = _sent(client, path, entry)
                    path.unlink(missing_ok=True)
                except OSError as error:
                    raise ReefError(f"cannot change {path}: {error.strerror}", hint="reef doctor") from error
                tell(sent)


def deliver(home: Home, client: Client) -> None:
    """What a `reef` command does on its way, once a daemon answers."""
    sent = Outbox(home).deliver(client)
    done = sum(len(one.stored) + len(one.undone) + bool(one.pins) for one in sent)
    if done:
        diagnostics.say(f"sent what waited for the daemon: {output.count(done, 'piece')} of feedback")
    for _, error in (refusal for one in sent for refusal in one.refused):
        diagnostics.say(f"a rating that waited was refused: {error.message}")


def last_answer(client: Client, session: str, *, until_ns: int | None = None) -> dict[str, Any]:
    """The session's last answer of its main line (of any line where that has none) that was there then.

    Raises NotFound where it has none.
    """
    before = None
    while True:
        page = client.get("/reef/records", session=session, limit=_LOOKED_AT, before=before)
        ok = [one for one in page["items"] if one["end"] == "ok" and (until_ns is None or _ended(one) <= until_ns)]
        main = [record for record in ok if record["kind"] in ("main", "retry")]
        if ok:
            found: dict[str, Any] = (main or ok)[0]
            return found
        before = page["next"]
        if before is None:
            raise NotFound(f"session {session} has no answer to rate", hint="reef traces show says why")


def _ended(record: Mapping[str, Any]) -> int:
    return int(record["started_ns"]) + int(record["duration_us"]) * 1000


def _sent(client: Client, path: Path, entry: Entry) -> Sent:
    named, lost = _named(client, entry)
    if named != entry.reports:  # what is meant must not change when it is sent again
        write_private(path, _encoded(replace(entry, reports=named)))
    stored, undone, refused = [], [], list(lost)
    for report in named:
        body = {name: value for name, value in asdict(report).items() if name in ("score", "feedback", "metadata")}
        body |= {"references": [report.receipt], "agent_record_id": report.id}
        try:
            client.post("/reef/report", body, scope=report.scenario)
            stored.append(report)
        except ReefError as error:
            refused.append((report.id, _final(error)))
    for id in entry.undo:
        try:
            undone.append(client.post("/reef/undo", {"report": id}))
        except NotFound:  # taken back already, or forgotten
            undone.append({"id": id})
        except ReefError as error:
            refused.append((id, _final(error)))
    pinned = _pinned(client, entry, refused)
    return Sent(tuple(stored), tuple(undone), tuple(refused), pinned)


def _pinned(client: Client, entry: Entry, refused: list[tuple[str, ReefError]]) -> tuple[str, ...]:
    """The entry's sessions as they are now as it wants them. Pins that were sent before are sent again: they are so."""
    try:
        for start in range(0, len(entry.pins), _PINNED_AT_ONCE):
            some = entry.pins[start : start + _PINNED_AT_ONCE]
            client.post("/reef/pin", {"sessions": some, "pinned": entry.pinned})
    except ReefError as error:
        refused.append((entry.pins[0], _final(error)))
        return ()
    return entry.pins


def _named(client: Client, entry: Entry) -> tuple[tuple[Report, ...], list[tuple[str, ReefError]]]:
    """The reports with the receipts they are about, and those about nothing any more."""
    named, lost = [], list[tuple[str, ReefError]]()
    for report in entry.reports:
        try:
            receipt = report.receipt or last_answer(client, report.session, until_ns=entry.at_ns)["receipt"]
            named.append(replace(report, receipt=receipt))
        except ReefError as error:
            lost.append((report.id, _final(error)))
    return tuple(named), lost


def _final(error: ReefError) -> ReefError:
    """A refusal that would be the same tomorrow; raises any other."""
    if isinstance(error, Unreachable) or error.status >= 500:
        raise error
    return error


def _encoded(entry: Entry) -> bytes:
    return json.dumps(asdict(entry)).encode()


def _read(path: Path) -> Entry | None:
    """None for a file that somebody else took away, or that another version wrote: that one stays."""
    try:
        told = json.loads(path.read_bytes())
        reports, pins = tuple(Report(**one) for one in told["reports"]), tuple(told.get("pins", ()))
        return Entry(reports, tuple(told["undo"]), int(told["at_ns"]), pins, bool(told.get("pinned", True)))
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
