"""One trace: readable, folded, live; feedback about the answer under the cursor."""

from typing import Any

import pytest

from daemon.core.paths import Home
from reef_cli.tui import transcript
from tests.fakes.dashboard import NOW, FakeDaemon, record, said, session
from tests.reef_cli.tui.seen import Seen, dashboard

COVERS = ("reef_cli/tui/screens/reading.py", "reef_cli/tui/transcript.py")
HOSTILE = "\x1b]52;c;cm0gLXJm\x07 [red]not red[/red] \x9b2J"


def sample(**changes: Any) -> dict[str, Any]:
    one = session(1, title="list the files, then explain", turns=2, cwd="/home/me/work", agent="pi")
    call = {"type": "tool_use", "id": "c1", "name": "bash", "arguments": '{"command": "ls -la && cat README.md"}'}
    result = {"type": "tool_result", "id": "c1", "content": f"total 8\nREADME.md {HOSTILE}\n" * 9, "is_error": False}
    reports = [
        {"id": "rep_1", "score": 0.0, "feedback": None, "undone_ns": NOW, "references": ["rec_2"]},
        {"id": "rep_2", "score": 1.0, "feedback": "use uv, not pip", "undone_ns": None, "references": ["rec_2"]},
    ]
    first = {
        "record": record("rec_1", one["id"], cached_tokens=0),
        "new_messages": [
            said("system", "You are a careful agent. " * 30),
            said("user", "list the files,\nthen explain"),
        ],
        "answer": said("assistant", {"type": "thinking", "text": "let me see"}, "I look.", call),
        "reports": [],
    }
    second = {
        "record": record("rec_2", one["id"], seq=2),
        "new_messages": [said("tool", result)],
        "answer": said("assistant", "There is one file, 漢字.md, and it explains the project in many words that wrap."),
        "reports": reports,
    }
    failed = {
        "record": record("rec_3", one["id"], seq=3, end="error", status=500, error="the engine died", model=None),
        "new_messages": [said("user", "and now?")],
        "answer": None,
        "reports": [],
    }
    return {"session": one, "records": [first, second, failed], **changes}


async def opened(seen: Seen, fake: FakeDaemon, trace: dict[str, Any]) -> None:
    await seen.until(lambda: seen.panel.list.window.rows)
    await seen.press("enter")
    await seen.shows("the engine died")


def texts(items: list[transcript.Item], *unfolded: str) -> list[str]:
    """The lines of a trace in 80 columns."""
    return [
        line.text
        for item in items
        for line in transcript.lines(item, 80, folded=item.folds and item.id not in unfolded)
    ]


def test_what_an_agent_added_to_a_persons_words_is_folded() -> None:
    added = {"type": "text", "text": "<system-reminder>be brief</system-reminder>fix it", "written": "fix it"}
    trace = sample()
    trace["records"][0]["new_messages"] = [said("user", added, {**added, "written": ""})]
    shown = texts(transcript.items(trace["records"], NOW))
    folded = "▸ added by the agent <system-reminder>be brief</system-reminder>fix it"
    at = shown.index("user")
    assert shown[at : at + 4] == ["user", "  fix it", folded, folded]


def test_what_only_came_along_is_folded() -> None:
    trace = sample()
    examples = [said("user", "an example"), said("assistant", "Ok.")]
    trace["records"][0]["new_messages"] = [*({**one, "earlier": True} for one in examples), said("user", "fix it")]
    items = transcript.items(trace["records"], NOW)
    (folded,) = (item.id for item in items if "from before" in item.head)
    shown = texts(items)
    at = shown.index("▸ 2 messages from before an example Ok.")
    assert shown[at + 1 : at + 3] == ["user", "  fix it"]
    unfolded = texts(items, folded)
    assert unfolded[at : at + 3] == ["▾ 2 messages from before", "  an example", "  Ok."]


@pytest.fixture
def fake_with_one(fake: FakeDaemon) -> FakeDaemon:
    trace = sample()
    fake.sessions = [trace["session"]]
    fake.traces[trace["session"]["id"]] = trace
    return fake


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden(reef_home: Home, fake_with_one: FakeDaemon, size: tuple[int, int]) -> None:
    async with dashboard(reef_home, size) as seen:
        await opened(seen, fake_with_one, sample())
        await seen.shows("embedded: ready")
        seen.golden(f"trace-{size[0]}x{size[1]}")


@pytest.mark.parametrize("size", [(20, 6), (40, 12), (60, 20)])
async def test_small_screens(reef_home: Home, fake_with_one: FakeDaemon, size: tuple[int, int]) -> None:
    async with dashboard(reef_home, size) as seen:
        await seen.until(lambda: seen.panel.list.window.rows)
        await seen.press("enter")
        await seen.until(lambda: len(seen.panel.list.window.rows) > 5)
        assert {strip.cell_length for strip in seen.app.screen._compositor.render_strips()} == {size[0]}


async def test_unfolding_shows_all_of_it_inert(reef_home: Home, fake_with_one: FakeDaemon) -> None:
    async with dashboard(reef_home, (100, 60)) as seen:
        await opened(seen, fake_with_one, sample())
        assert seen.screen.count("README.md \\x1b]52;") == 1  # folded: a part of it, on one line
        await seen.select("▸ result", "k")
        await seen.press("enter")
        await seen.until(lambda: "▾ result" in seen.marked)
        assert seen.screen.count("README.md \\x1b]52;c;cm0gLXJm\\x07 [red]not red[/red] \\x9b2J") == 9
        await seen.press("enter")
        await seen.until(lambda: "▸ result" in seen.marked)


async def test_a_narrower_screen_wraps_again(reef_home: Home, fake_with_one: FakeDaemon) -> None:
    async with dashboard(reef_home, (120, 40)) as seen:
        await opened(seen, fake_with_one, sample())
        await seen.shows("explains the project in many words that wrap.")
        await seen.pilot.resize_terminal(50, 40)
        await seen.shows("There is one file, 漢字.md, and it explains\n")


async def test_keys_that_cannot_act_say_why(reef_home: Home, fake_with_one: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen, fake_with_one, sample())
        await seen.press("plus")
        await seen.shows("this exchange has no answer to rate: it ended error")
        await seen.press("enter")
        await seen.shows("there is nothing to unfold on this line")
        assert "(+ good)" in seen.screen
        await seen.press("g", "minus")
        await seen.shows("no answer is selected: j goes down to one")
        assert fake_with_one.posts == []


async def test_it_grows_while_it_is_read(reef_home: Home, fake_with_one: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen, fake_with_one, sample())
        trace = fake_with_one.traces[fake_with_one.sessions[0]["id"]]
        one = trace["session"]["id"]
        trace["records"].append({"record": record("rec_4", one, seq=4), "new_messages": [], "reports": [],
                                 "answer": said("assistant", "a later answer")})  # fmt: skip
        fake_with_one.record(trace["session"])
        await seen.until(lambda: "a later answer" in seen.marked)


async def test_a_note_takes_every_letter(reef_home: Home, fake_with_one: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen, fake_with_one, sample())
        await seen.until(lambda: "embedded" in seen.screen)
        await seen.select("There is one file", "k")
        await seen.press("c")
        await seen.shows("Note on the answer rec_2")
        await seen.press(*"q1+z?0")
        await seen.shows("q1+z?0")
        await seen.press("escape")
        await seen.until(lambda: "There is one file" in seen.marked)
        assert fake_with_one.posts == []
