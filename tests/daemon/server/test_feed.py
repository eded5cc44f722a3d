"""The events that a person's dashboard follows: in order, resumable, and never silently short."""

import json
import socket
from typing import Any, NamedTuple, Self

import pytest

from tests.fakes.daemon import RunningDaemon
from tests.fakes.provider import Turn

TURNS = (Turn("Hello."),)


def say(daemon: RunningDaemon, text: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    status, told, raw = daemon.post("/v1/chat/completions", body)
    assert status == 200, raw
    return told["x-reef-agent-record-id"]


def rate(daemon: RunningDaemon, receipt: str, score: float) -> None:
    assert daemon.control("POST", "/reef/report", {"score": score, "references": [receipt]})[0] == 200


class Event(NamedTuple):
    name: str
    id: str
    data: Any


class Following:
    """The event stream; entered once it has begun."""

    def __init__(self, daemon: RunningDaemon, after: str | None = None, *, of: str = "/reef/events") -> None:
        self._of = of
        self._path = str(daemon.home.socket)
        self._resume = "" if after is None else f"last-event-id: {after}\r\n"

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(20)
        self._socket.connect(self._path)
        self._socket.sendall(f"GET {self._of} HTTP/1.1\r\nhost: localhost\r\n{self._resume}\r\n".encode())
        self._lines = self._socket.makefile("r", encoding="utf-8")
        assert any(line.startswith(": reef") for line in self._lines)
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()

    def until(self, wanted: str) -> list[Event]:
        """All events up to the first one of that name."""
        found: list[Event] = []
        fields: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.strip().partition(": ")
            fields[name] = value
            if name == "data":
                found.append(Event(fields["event"], fields["id"], json.loads(value)))
                if found[-1].name == wanted:
                    return found
        raise AssertionError("the event stream ended")


def test_a_record_is_told_and_the_id_goes_on_behind_it(daemon: RunningDaemon) -> None:
    with Following(daemon) as stream:
        receipt = say(daemon, "an event")
        record = stream.until("record")[-1]
    assert record.data["receipt"] == receipt
    missed = say(daemon, "while nobody watched")
    with Following(daemon, record.id) as stream:
        assert stream.until("record")[-1].data["receipt"] == missed
    with Following(daemon, str(record.data["seq"])) as stream:  # a record's number alone will do, too
        assert stream.until("record")[-1].data["receipt"] == missed


def test_feedback_given_while_nobody_watched_is_told_later_behind_its_record(daemon: RunningDaemon) -> None:
    with Following(daemon) as stream:
        before = stream.until("engine")[-1].id
    receipt = say(daemon, "rate me")
    rate(daemon, receipt, 1)
    with Following(daemon, before) as stream:
        events = stream.until("report")
    assert [event.name for event in events if event.name != "engine"] == ["record", "report"]
    assert events[-1].data["references"] == [receipt]
    with Following(daemon, events[-1].id) as stream:
        rate(daemon, receipt, 0)
        assert stream.until("report")[-1].data["score"] == 0, "nothing is told twice"


def test_whoever_missed_more_than_is_kept_is_told_so(daemon: RunningDaemon) -> None:
    receipt = say(daemon, "rate me often")
    with Following(daemon) as stream:
        before = stream.until("engine")[-1].id
    for number in range(501):
        rate(daemon, receipt, number % 2)
    with Following(daemon, before) as stream:
        events = stream.until("report")
    assert [event.name for event in events] == ["missed", "report"]
    assert "more happened" in events[0].data["reason"]


def test_the_id_of_another_run_gets_all_records_and_a_word_about_the_rest(daemon: RunningDaemon) -> None:
    with Following(daemon) as stream:
        seq = stream.until("engine")[-1].id.partition(".")[0]
    receipt = say(daemon, "after a restart")
    with Following(daemon, f"{seq}.00000000.7") as stream:
        events = stream.until("record")
    assert [event.name for event in events] == ["missed", "record"]
    assert events[-1].data["receipt"] == receipt


def test_an_id_from_a_larger_store_waits_for_no_number_that_may_never_come(daemon: RunningDaemon) -> None:
    with Following(daemon, "999999999") as stream:
        receipt = say(daemon, "a new store counts from the beginning")
        assert stream.until("record")[-1].data["receipt"] == receipt


@pytest.mark.parametrize("given", [b"\xb2", b"9" * 30, b"-1", b"1.2", b"1.a.b", b"1.2.3.4", b"1.a."])
def test_events_resume_only_from_an_id(daemon: RunningDaemon, given: bytes) -> None:
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as raw:
        raw.sendall(
            b"GET /reef/events HTTP/1.1\r\nhost: 127.0.0.1\r\nx-reef-token: %s\r\nlast-event-id: %s\r\n\r\n"
            % (daemon.control_token.encode(), given)
        )
        assert raw.recv(100).startswith(b"HTTP/1.1 400 ")
