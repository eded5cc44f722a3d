"""A recording: what the dashboard was told, in a file that its owner alone reads, whatever becomes of the daemon."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import NotFound, Unreachable, UsageError
from daemon.core.paths import Home
from reef_cli.tui.recording import Tape
from tests.fakes.dashboard import FakeDaemon, session
from tests.reef_cli.raw_server import answering, chunked


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_answers_and_events_with_their_times(reef_home: Home, fake: FakeDaemon, tmp_path: Path) -> None:
    fake.sessions = [session(1, title="höre \x1b[2J")]
    tape = Tape(tmp_path / "demo.jsonl")
    client = tape.client(reef_home.socket, 30)
    told = client.get("/reef/sessions", limit=5)
    events = client.events("/reef/events")
    assert next(events)[0] == "engine"
    with pytest.raises(NotFound):
        client.get("/reef/traces/nowhere")
    tape.close()
    events.close()  # type: ignore[attr-defined]
    assert stat.S_IMODE(tape.path.stat().st_mode) == 0o600
    head, *rest = entries(tape.path)
    assert head["reef_recording"] == 1
    assert [one["get"] for one in rest if "get" in one] == [
        "/reef/sessions?limit=5",
        "/reef/events",
        "/reef/traces/nowhere",
    ]
    assert json.loads("".join(one["line"] for one in rest if one["n"] == 1 and "line" in one)) == told
    assert [one["end"] and one["end"]["error"]["kind"] for one in rest if "end" in one] == [None, "not_found"]
    assert [one["at"] for one in rest] == sorted(one["at"] for one in rest)


def test_a_full_disk_ends_it_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("wb") as disk:
        full = os.dup(disk.fileno())
    monkeypatch.setattr(os, "open", lambda *_: full)
    tape = Tape(tmp_path / "demo.jsonl")
    tape.note(1, line="more")
    assert tape.ended == "No space left on device"
    tape.close()


def test_what_is_sent_is_not_in_it(reef_home: Home, fake: FakeDaemon, tmp_path: Path) -> None:
    fake.jobs = [{"id": "job_1", "state": "running"}]
    tape = Tape(tmp_path / "demo.jsonl")
    tape.client(reef_home.socket, 30).post("/reef/jobs/job_1/cancel", {"secret": "hush"})
    tape.close()
    assert len(entries(tape.path)) == 1


def test_a_daemon_that_goes_is_told(reef_home: Home, tmp_path: Path) -> None:
    tape = Tape(tmp_path / "demo.jsonl")
    client = tape.client(reef_home.socket, 30)
    with pytest.raises(Unreachable):
        client.get("/reef/sessions")
    with answering(reef_home.socket, chunked(b"event: a\ndata: 1\n\n", ended=False)), pytest.raises(Unreachable):
        list(client.events("/reef/events"))
    tape.close()
    gone, cut = [one["end"] for one in entries(tape.path) if "end" in one]
    assert (gone["gone"], gone["error"]["kind"], cut["gone"]) == (True, "unreachable", False)


def test_a_stream_that_is_left_has_no_end(reef_home: Home, fake: FakeDaemon, tmp_path: Path) -> None:
    tape = Tape(tmp_path / "demo.jsonl")
    client = tape.client(reef_home.socket, 30)
    events = client.events("/reef/events")
    next(events)
    client.break_off()
    with pytest.raises(Unreachable):
        next(events)
    tape.close()
    assert not any("end" in one for one in entries(tape.path))


def test_it_is_bounded(reef_home: Home, fake: FakeDaemon, tmp_path: Path) -> None:
    fake.sessions = [session(n) for n in range(50)]
    tape = Tape(tmp_path / "demo.jsonl", most=10_000)
    client = tape.client(reef_home.socket, 30)
    for _ in range(3):
        assert len(client.get("/reef/sessions")["items"]) == 50
    assert tape.ended == "it is full: 0 MB"
    tape.close()
    assert tape.path.stat().st_size == tape.bytes <= 10_000


def test_a_full_disk_does_not_end_the_dashboard(reef_home: Home, fake: FakeDaemon) -> None:
    with pytest.raises(UsageError, match="/dev/full is there already"):
        Tape(Path("/dev/full"))
    with pytest.raises(UsageError, match="cannot write /nowhere/x: No such file"):
        Tape(Path("/nowhere/x"))
