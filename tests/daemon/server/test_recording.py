"""Agents are answered as ever while nothing is recorded, and everybody can see that nothing is."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon, start
from tests.fakes.provider import Turn, running_provider

CHAT = "/v1/chat/completions"
WORD = "pomegranate"


@pytest.fixture(scope="module")
def config() -> Iterator[str]:
    with running_provider((Turn("Answered."),)) as provider:
        yield provider.config() + 'privacy: {deny: ["/denied/*"]}\n'


@pytest.fixture(scope="module")
def daemon(module_home: Home, config: str) -> Iterator[RunningDaemon]:
    with running_daemon(module_home, config) as running:
        yield running


def say(daemon: RunningDaemon, **headers: str) -> tuple[bytes, str, str | None]:
    body = {"model": "m", "messages": [{"role": "user", "content": WORD}]}
    status, told, raw = daemon.post(CHAT, body, **headers)
    assert status == 200, raw
    return raw, told["x-reef-agent-record-id"], told.get("x-reef-recording")


def test_a_pause_serves_and_records_nothing_until_it_is_resumed(daemon: RunningDaemon) -> None:
    before = daemon.get("/reef/status")["counts"]["records"]
    assert daemon.control("POST", "/reef/pause", {})[1]["state"] == "paused"
    raw, receipt, said = say(daemon)
    assert b"Answered." in raw
    assert said == "paused"
    status = daemon.get("/reef/status")
    assert (status["recording"]["state"], status["counts"]["records"]) == ("paused", before)
    assert daemon.control("GET", f"/reef/records/{receipt}")[0] == 404
    assert daemon.control("POST", "/reef/report", {"score": 1, "references": [receipt]})[0] == 400
    assert daemon.control("POST", "/reef/resume", {})[1]["state"] == "on"
    _, receipt, said = say(daemon)
    assert said is None
    assert daemon.get(f"/reef/records/{receipt}")["end"] == "ok"


def test_a_pause_survives_kill_and_leaves_nothing_in_any_file(reef_home: Home, config: str) -> None:
    with running_daemon(reef_home, config) as daemon:
        assert daemon.control("POST", "/reef/pause", {"seconds": 3600})[1]["until_ns"] > 0
        daemon.kill()
    again = start(reef_home, config)
    try:
        assert say(again)[2] == "paused"
        assert again.get("/reef/status")["recording"]["until_ns"] > 0
    finally:
        again.stop()
    found = [path for path in reef_home.root.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]
    assert found == []


def test_a_denied_folder_is_served_and_not_recorded(daemon: RunningDaemon, tmp_path: Path) -> None:
    before = daemon.get("/reef/status")["counts"]["records"]
    ignored = tmp_path / "kéep öut"  # the wrapper sends a path percent-encoded
    ignored.mkdir()
    (ignored / ".reefignore").write_text("")
    for cwd in ("/denied/client", quote(str(ignored))):
        raw, _, said = say(daemon, x_reef_cwd=cwd)
        assert (b"Answered." in raw, said) == (True, "denied")
    assert daemon.get("/reef/status")["counts"]["records"] == before
    assert say(daemon, x_reef_cwd=quote(str(tmp_path)))[2] is None
    assert daemon.get("/reef/status")["counts"]["records"] == before + 1


def test_the_last_answer_says_that_a_later_one_is_not_recorded(daemon: RunningDaemon) -> None:
    """Else a rating would go to an answer that nobody thinks of."""
    _, receipt, _ = say(daemon)
    last = daemon.get("/reef/last")
    assert (last["receipt"], last["unrecorded"]) == (receipt, None)
    say(daemon, x_reef_cwd="/denied/client")
    assert daemon.get("/reef/last")["unrecorded"] == "denied"
    daemon.control("POST", "/reef/pause", {})
    say(daemon)
    daemon.control("POST", "/reef/resume", {})
    last = daemon.get("/reef/last")
    assert (last["receipt"], last["unrecorded"]) == (receipt, "paused")
    say(daemon)
    assert daemon.get("/reef/last")["unrecorded"] is None


@pytest.mark.parametrize("seconds", [0, -1, True, "1h", 1e300, [1]])
def test_a_pause_that_makes_no_sense_is_refused(daemon: RunningDaemon, seconds: object) -> None:
    status, said = daemon.control("POST", "/reef/pause", {"seconds": seconds})
    assert (status, said["error"]["kind"]) == (400, "usage")
    assert daemon.get("/reef/status")["recording"]["state"] == "on"


def test_an_agent_cannot_pause(daemon: RunningDaemon) -> None:
    """Else a prompt that got into an agent could hide what it does next."""
    assert daemon.post("/reef/pause", {})[0] == 401
    assert daemon.post("/reef/resume", {})[0] == 401
