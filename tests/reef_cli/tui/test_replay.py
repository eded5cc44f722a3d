"""A recording played by the same screens: what was told, when it was told, and nothing that could be changed."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import Conflict, NotFound, Unreachable, UsageError
from daemon.core.paths import Home
from reef_cli.tui.recording import Tape
from reef_cli.tui.replay import FIXED, Replay, load
from tests.fakes.dashboard import NOW, FakeDaemon, session, status
from tests.reef_cli.tui.screens.test_trace import sample
from tests.reef_cli.tui.seen import Seen
from tests.reef_cli.tui.seen import dashboard as shown

HEAD = {"reef_recording": 1, "version": "1", "began_ns": NOW}


def written(path: Path, *entries: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in (HEAD, *entries)))
    return path


def answer(n: int, path: str, body: Any, at: float = 0.0) -> list[dict[str, Any]]:
    return [
        {"at": at, "n": n, "get": path},
        {"at": at, "n": n, "line": json.dumps(body)},
        {"at": at, "n": n, "end": None},
    ]


def events(n: int, *lines: tuple[float, str, Any]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"at": 0.0, "n": n, "get": "/reef/events"}]
    for at, name, data in lines:
        made += [{"at": at, "n": n, "line": line} for line in (f"event: {name}\n", f"data: {json.dumps(data)}\n", "\n")]
    return made


@pytest.fixture
def play(tmp_path: Path) -> Any:
    players: list[Replay] = []

    def make(*entries: dict[str, Any], speed: float = 100.0) -> Replay:
        players.append(Replay(load(written(tmp_path / "demo.jsonl", *entries)), speed=speed))
        return players[-1]

    yield make
    for player in players:
        player.stop()


Play = Callable[..., Replay]


@asynccontextmanager
async def dashboard(home: Home, player: Replay) -> AsyncIterator[Seen]:
    async with shown(home, now=player.now_ns, connect=lambda _timeout: player) as seen:
        yield seen
    player.stop()


async def test_what_was_recorded_is_seen_again(reef_home: Home, fake: FakeDaemon, tmp_path: Path) -> None:
    """Recorded from a dashboard, played without a daemon."""
    fake.sessions = [session(n) for n in range(1, 4)]
    fake.traces[session(3)["id"]] = sample()
    tape = Tape(tmp_path / "demo.jsonl")
    async with shown(reef_home, connect=lambda timeout: tape.client(reef_home.socket, timeout)) as seen:
        await seen.until(lambda: "session 3" in seen.marked)
        await seen.press("enter")
        await seen.shows("the engine died")
        await seen.press("escape")
        fake.record(session(4))
        await seen.until(lambda: "session 4" in seen.marked)
    tape.close()
    fake.stop()
    player = Replay(load(tape.path), speed=50)
    async with dashboard(reef_home, player) as seen:
        await seen.until(lambda: "session 4" in seen.marked)
        await seen.shows("played to its end")
        await seen.press("k", "enter")
        await seen.shows("the engine died")
        await seen.press("escape", "3")
        await seen.shows("this is not in the recording")
    fake.start()  # the fixture stops it


async def test_nothing_can_be_changed(reef_home: Home, play: Play) -> None:
    page = {"items": [session(1)], "next": None, "total": 1}
    player = play(*events(1, (0.0, "engine", [])), *answer(2, "/reef/sessions?limit=100", page))
    async with dashboard(reef_home, player) as seen:
        await seen.until(lambda: "session 1" in seen.marked)
        await seen.shows("recording of 2026-01-31 12:00", "(+ good)")
        await seen.press("plus")
        await seen.shows(FIXED)
        await seen.press("c")
        assert "Note on" not in seen.screen
    with pytest.raises(Conflict, match="this is a recording"):
        player.post("/reef/report", {})


async def test_nothing_of_this_machine_is_shown(reef_home: Home, play: Play) -> None:
    reef_home.log.write_text("a line of this machine's log\n")
    player = play(*events(1, (0.0, "engine", [])), *answer(2, "/reef/status", status()))
    async with dashboard(reef_home, player) as seen:
        await seen.press("5")
        await seen.shows("a recording has no logs")
        assert "a line of" not in seen.screen
        await seen.press("6")
        await seen.shows("runs since")
        assert "checks" not in seen.screen
        await seen.press("r")
        await seen.shows(FIXED)


async def test_the_daemon_goes_in_it_as_it_did(reef_home: Home, play: Play) -> None:
    gone = {"error": {"kind": "unreachable", "message": "the daemon is not running", "hint": None}, "gone": True}
    player = play(
        *events(1, (0.0, "engine", [])),
        {"at": 20.0, "n": 1, "end": gone},
        {"at": 30.0, "n": 2, "get": "/reef/events"},
        {"at": 30.0, "n": 2, "end": gone},
        {"at": 150.0, "n": 3, "get": "/reef/events"},
        *[{"at": 150.0, "n": 3, "line": line} for line in ("event: engine\n", "data: []\n", "\n")],
        *answer(4, "/reef/sessions?limit=100", {"items": [session(7)], "next": None, "total": 1}, at=151.0),
    )
    async with dashboard(reef_home, player) as seen:
        await seen.shows("! the daemon is not running")
        await seen.until(lambda: "!" not in seen.screen.splitlines()[1])
        await seen.until(lambda: "session 7" in seen.marked)


def test_the_newest_answer_up_to_now(play: Play) -> None:
    early, late = {"items": ["early"]}, {"items": ["late"]}
    entries = [*answer(1, "/a", early, at=10.0), *answer(2, "/a", late, at=1e6)]
    assert play(*entries, speed=1).get("/a") == early  # asked for before it was: the first there is
    assert play(*entries, speed=100).get("/a") == early
    player = play(*answer(1, "/a", early), *answer(2, "/a", late, at=0.01), speed=100)
    assert asyncio.run(_after(player, 0.01)) == late


async def _after(player: Replay, seconds: float) -> Any:
    await asyncio.sleep(seconds)
    return player.get("/a")


def test_pages_that_nobody_asked_for_then(play: Play) -> None:
    rows = [session(n) for n in range(9, 0, -1)]
    player = play(
        *answer(1, "/reef/sessions?limit=6", {"items": rows[:6], "next": "4", "total": 9}),
        *answer(2, "/reef/sessions?before=4&limit=6", {"items": rows[6:], "next": None, "total": 9}),
        *answer(3, "/reef/sessions?limit=6&q=agent%3Api", {"items": [], "next": None, "total": 0}),
    )
    page = player.get("/reef/sessions", before=8, limit=3)
    assert ([row["seq"] for row in page["items"]], page["next"], page["total"]) == ([7, 6, 5], "5", 9)
    page = player.get("/reef/sessions", after=7, limit=6)
    assert ([row["seq"] for row in page["items"]], page["next"]) == ([8, 9], None)
    named = player.get("/reef/sessions", ids=",".join(session(n)["id"] for n in (7, 5, 700)))
    assert [row["seq"] for row in named["items"]] == [7, 5]
    with pytest.raises(NotFound, match="this is not in the recording"):
        player.get("/reef/sessions", q="agent:codex", limit=6)
    with pytest.raises(NotFound, match="/reef/traces/x"):
        player.get("/reef/traces/x")
    with pytest.raises(NotFound, match="/reef/live/x"):
        next(player.events("/reef/live/x"))


def test_bytes_come_back_as_they_were(reef_home: Home, tmp_path: Path) -> None:
    from tests.reef_cli.raw_server import answering, ok

    body = bytes(range(256)) + "höre\n".encode()
    tape = Tape(tmp_path / "demo.jsonl")
    with answering(reef_home.socket, ok(body, kind="application/octet-stream")):
        assert tape.client(reef_home.socket, 30).content("/x") == body
    tape.close()
    assert Replay(load(tape.path)).content("/x") == body


@pytest.mark.parametrize(
    ("tail", "trouble"),
    [
        ('{"at": 1, "n": 2, "li', "line 5 is cut off; what stands before it is played"),
        ("nonsense\n", "line 5 is no line of a recording; what stands before it is played"),
        ('{"at": 1, "n": 7, "line": "of nothing"}\n', "line 5 is no line of a recording"),
        ("[" * 100_000 + "\n", "line 5 is no line of a recording"),
        ("[1]\n", "line 5 is no line"),
        ('{"at": NaN, "n": 2, "get": "/b"}\n', "line 5 is no line"),
        ('{"at": -1, "n": 2, "get": "/b"}\n', "line 5 is no line"),
        ('{"at": Infinity, "n": 2, "get": "/b"}\n', "line 5 is no line"),
        ('{"at": 1, "n": 1, "end": "boom"}\n', "line 5 is no line"),
        ('{"at": 1, "n": 1, "end": {"error": 7}}\n', "line 5 is no line"),
    ],
)
def test_a_bad_or_cut_file_plays_as_far_as_it_goes(tmp_path: Path, tail: str, trouble: str) -> None:
    path = written(tmp_path / "demo.jsonl", *answer(1, "/a", {"items": [1]}))
    with path.open("a") as file:
        file.write(tail)
    recording = load(path)
    assert recording.trouble is not None
    assert trouble in recording.trouble
    assert Replay(recording).get("/a") == {"items": [1]}


async def test_the_trouble_is_on_the_screen(reef_home: Home, tmp_path: Path) -> None:
    path = written(tmp_path / "demo.jsonl", *events(1, (0.0, "engine", [])))
    with path.open("a") as file:
        file.write("nonsense\n")
    async with dashboard(reef_home, Replay(load(path))) as seen:
        await seen.shows("line 6 is no line of a recording")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: this is no recording"),
        ("# Reef\n", "line 1: this is no recording"),
        ('{"reef_recording": 1}\n', "line 1: this is no recording"),
        ('{"reef_recording": 1, "began_ns": Infinity}\n', "line 1: this is no recording"),
        ('{"reef_recording": 1, "began_ns": 1e300}\n', "line 1: this is no recording"),
        ('{"reef_recording": 1, "began_ns": -1}\n', "line 1: this is no recording"),
        ("[" * 100_000, "line 1: this is no recording"),
        ('{"reef_recording": 2, "began_ns": 1}\n', "line 1: a recording of form 2; this Reef plays 1"),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "demo.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        load(path)
    with pytest.raises(UsageError, match="cannot read"):
        load(tmp_path / "nothing")


def test_an_error_comes_back_as_it_was(play: Play) -> None:
    missing = {"error": {"kind": "not_found", "message": "no such trace", "hint": None}, "gone": False}
    player = play({"at": 0, "n": 1, "get": "/a"}, {"at": 0, "n": 1, "end": missing})
    with pytest.raises(NotFound, match="no such trace"):
        player.get("/a")
    lost = {"error": {"kind": "unreachable", "message": "gone", "hint": None}, "gone": True}
    player = play({"at": 0, "n": 1, "get": "/e"}, {"at": 0, "n": 1, "end": lost})
    with pytest.raises(Unreachable) as raised:
        list(player.events("/e"))
    assert isinstance(raised.value.__cause__, FileNotFoundError)
