"""Every key in every place, at 80x24 and 120x36: what it changes on the screen is a golden.

The keys of a place are pressed in the table's order, one after the other, in one dashboard. What leaves the program
(`_LEAVES`) is tested where it can be: in a real terminal.
"""

import difflib
import os
from collections.abc import Iterator
from typing import Any, Final

import pytest

from daemon.core.client import Client
from daemon.core.paths import Home
from reef_cli.checks import Check
from reef_cli.tui.keys import LISTS, Key, Place, at
from reef_cli.tui.screens import status as status_screen
from reef_cli.tui.screens.panel import Panel
from tests.fakes.dashboard import FakeDaemon, job, model, record, release, said, session
from tests.reef_cli.tui.seen import GOLDEN, Seen, dashboard

#: tests/e2e/test_trace.py (editor and pager), tests/reef_cli/commands/test_tui.py (suspend, quit).
_LEAVES: Final = ("editor", "pager", "suspend", "quit")
_MOVES: Final = ("down", "up", "bottom", "top", "page_down", "page_up")
#: From the list of its kind, the keys that open a place.
_WAYS: Final = {
    Place.TRACE: (Place.TRACES, ("enter",)),
    Place.RAW: (Place.TRACES, ("enter", "R")),
    Place.CHANGES: (Place.TRACES, ("enter", "d")),
    Place.RELEASE: (Place.RELEASES, ("enter",)),
    Place.DIFF: (Place.RELEASES, ("d",)),
    Place.BLAME: (Place.RELEASES, ("d", "j", "B")),
    Place.JOB: (Place.JOBS, ("enter",)),
    Place.MODEL: (Place.MODELS, ("enter",)),
}
_LOG: Final = "2026-01-31T11:59:0{n}.000Z {level} reef.server: line {n}\n"


@pytest.fixture
def world(reef_home: Home, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> FakeDaemon:
    fake.sessions = [session(n, title=f"question {n}") for n in range(1, 31)]
    first, last = fake.sessions[0], fake.sessions[-1]
    fake.traces[first["id"]] = {"session": first, "records": []}
    last |= {"subagents": 1, "turns": 2}
    fake.beside[last["id"]] = [record("rec_side", last["id"], kind="subagent", edge="spawn", cost_usd=None)]
    entries = []
    for n in (1, 2):
        body = f'{{"model": "smollm2", "messages": [{{"role": "user", "content": "question {n}"}}]}}'
        row = record(f"rec_{n}", last["id"], seq=n)
        fake.closeup.bodies[f"rec_{n}"] = (body, 'data: {"choices": []}\n\ndata: [DONE]\n\n')
        fake.closeup.records[f"rec_{n}"] = {**row, "path": "/v1/chat/completions", "reports": fake.said.on[f"rec_{n}"]}
        entries.append({
            "record": row, "reports": fake.said.on[f"rec_{n}"], "new_messages": [said("user", f"question {n}")],
            "answer": said("assistant", {"type": "thinking", "text": "let me see"}, f"answer {n}"),
        })  # fmt: skip
    fake.traces[last["id"]] = {"session": last, "records": entries}
    fake.closeup.changes["rec_2"] = {
        "receipt": "rec_2", "previous": "rec_1", "edge": "extends", "chained": False, "kept": 2, "messages": 3,
        "added": [{"role": "user", "characters": 10, "begins": "question 2"}], "broken": None, "settings": [],
        "prompt_tokens": 100, "cached_tokens": 60, "previous_tokens": 60,
    }  # fmt: skip
    fake.releases = [release(1), release(2, head=True), release(3, state="pending")]
    fake.jobs = [job(1, state="done", outcome="released", release_id="r2-00000002"), job(2, state="running")]
    fake.models = [model("smollm2", active=True, loaded=True), model("qwen3")]
    reef_home.logs.mkdir(parents=True, exist_ok=True)
    reef_home.log.write_text("".join(_LOG.format(n=n, level="INFO" if n % 2 else "WARNING") for n in range(9)))
    (reef_home.logs / "engine.log").write_text("llama_context: ready\n")
    checks = [
        Check("python", "ok", "3.11.7"),
        Check("model", "warn", "none on this machine", "reef models add default"),
    ]
    monkeypatch.setattr(status_screen, "everything", lambda _: iter(checks))
    return fake


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("place", list(Place))
async def test_every_key(reef_home: Home, world: FakeDaemon, place: Place, size: tuple[int, int]) -> None:
    told = []
    async with dashboard(reef_home, size, connect=lambda seconds: Listening(reef_home.socket, timeout=seconds)) as seen:
        await seen.shows("question 30", "embedded: ready")
        await go(seen, place, world)
        told.append(seen.screen)
        for key in at(place):
            if place is Place.TRACE and key.id not in _MOVES:
                await seen.press("G")  # to an answer
                await settled(seen, world)
            if key.id not in _LEAVES:
                told.append(f"== {key.shown}: {key.label}\n{await effect(seen, key, world)}")
                await go(seen, place, world)
    golden(f"{str(place).replace(' ', '-')}-{size[0]}x{size[1]}", "".join(told))


async def effect(seen: Seen, key: Key, world: FakeDaemon) -> str:
    """The lines that it changes."""
    before = seen.screen.splitlines()
    await seen.press(key.keys[0])
    await settled(seen, world)
    changed = difflib.unified_diff(before, seen.screen.splitlines(), n=0, lineterm="")
    return "".join(f"{line}\n" for line in changed if line[:3] not in ("---", "+++") and line[0] != "-")


async def go(seen: Seen, place: Place, world: FakeDaemon) -> None:
    """To that place, from wherever a key has led."""
    start, way = _WAYS.get(place, (place, ()))
    while not isinstance(seen.app.screen, Panel) or seen.app.focused is not seen.panel.list:
        await seen.press("escape")
        await settled(seen, world)
    if seen.panel.place != place:
        await seen.press(str(LISTS.index(start) + 1))
        await settled(seen, world)
    while seen.panel.place not in (place, start):
        await seen.press("escape")
        await settled(seen, world)
    for key in way if seen.panel.place != place else ():
        await seen.press(key)
        await settled(seen, world)
    assert seen.panel.place == place


async def settled(seen: Seen, world: FakeDaemon) -> None:
    """Nothing is on its way any more: no request, no feedback, no event, and the screen has been drawn."""
    before = ""
    while seen.screen != before:
        before = seen.screen
        await seen.settle()
        await seen.rated()
        await seen.until(lambda: heard(seen) == world.told and seen.app._timer is None)
        await seen.settle()


class Listening(Client):
    """Counts the events that its reader has taken."""

    taken = 0

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        for event in super().events(path):
            yield event
            self.taken += 1


def heard(seen: Seen) -> int:
    client = seen.app.feed._client
    assert isinstance(client, Listening)
    return client.taken


def golden(name: str, text: str) -> None:
    path = GOLDEN / "keys" / f"{name}.txt"
    if os.environ.get("REEF_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
