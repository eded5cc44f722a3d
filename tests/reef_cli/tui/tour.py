"""A walk through every screen and dialog of the dashboard, whatever its size, over a daemon full of hostile text."""

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from daemon.core.paths import Home
from reef_cli.tui.keys import Place
from reef_cli.tui.screens.command import CommandRun
from reef_cli.tui.screens.panel import Panel
from tests.fakes.dashboard import ENGINES, FakeDaemon, job, model, record, release, said, session, status
from tests.reef_cli.tui.seen import Seen

#: What broke dashboards: an escaped bracket (Textualize/textual#6155), an unclosed one (codeplain#316), a path in
#: brackets (agent-zero#1606), a reasoning model's brackets (lilbee#458).
MARKUP: Final = ("[/", "z [b +", "[/a0/tests/x]", "_flush(b) [1] [bold")
#: What a terminal acts on, and what it measures in ways of its own.
CONTROL: Final = (
    "\x1b]0;owned\x07\x1b[2J\x9b2J\u202egnp.exe\u2066 \r\x00 漢字 e\u0301 👨\u200d👩\u200d👧 \ufeff"
    "\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\ \x1b]52;c;b3duZWQ=\x07 \x1bPq#0;2;0;0;0#0~~@@\x1b\\ "
    f"\x85\u2028\u2029\x84\x90\x9d {'Z' + chr(0x335) * 90} \U000e0041 \u3164"
)
HOSTILE: Final = " ".join((*MARKUP, CONTROL))


def hostile(home: Home, fake: FakeDaemon) -> None:
    """Every text that comes from outside is hostile: wherever the daemon's shapes leave it open."""
    one = session(1, title=HOSTILE, agent=HOSTILE, scenario=HOSTILE, cwd=HOSTILE, score=1.0)
    call = {"type": "tool_use", "id": "c", "name": HOSTILE, "arguments": HOSTILE}
    result = {"type": "tool_result", "id": "c", "content": HOSTILE, "is_error": False}
    thought = {"type": "thinking", "text": HOSTILE}
    shown = {"type": "image", "media_type": HOSTILE, "source": HOSTILE}
    entry: dict[str, Any] = {
        "record": record("rec_1", one["id"], model=HOSTILE, agent=HOSTILE, scenario=HOSTILE, release_id=HOSTILE),
        "new_messages": [said("user", HOSTILE, shown), said("tool", result)],
        "answer": said("assistant", thought, HOSTILE, call),
        "reports": [{"id": "rep_1", "score": 0.5, "feedback": HOSTILE, "undone_ns": None, "references": ["rec_1"]}],
    }
    exchange = fake.closeup
    exchange.records["rec_1"] = {**entry["record"], "path": HOSTILE, "reports": entry["reports"]}
    exchange.bodies["rec_1"] = (f'{{"model": "{HOSTILE}",\n"a": {HOSTILE}', f"data: {HOSTILE}\n\n{HOSTILE}")
    parted = {"was": HOSTILE, "now": HOSTILE, "offset": 3}
    exchange.changes["rec_1"] = {
        "receipt": HOSTILE, "previous": HOSTILE, "chained": False, "kept": 1, "edge": HOSTILE, "prompt_tokens": 9,
        "broken": {**parted, "at": HOSTILE, "message": 0, "role": HOSTILE, "tokens": 7}, "cached_tokens": 3,
        "added": [{"role": HOSTILE, "characters": 9, "begins": HOSTILE}], "settings": [{**parted, "name": HOSTILE}],
    }  # fmt: skip
    fake.sessions, fake.traces = [one], {one["id"]: {"session": one, "records": [entry]}}
    fake.releases = [release(1, reason=HOSTILE, card=HOSTILE, diff=f"+{HOSTILE}\n-{HOSTILE}", recipe=HOSTILE)]
    fake.jobs = [job(1, recipe=HOSTILE, scenario=HOSTILE, message=HOSTILE, state="running", log=[HOSTILE] * 3,
                     progress={"step": HOSTILE, "done": 1, "total": 2})]  # fmt: skip
    fake.models = [model(HOSTILE, source=HOSTILE, licence=HOSTILE)]
    fake.adding = [{"source": HOSTILE, "phase": HOSTILE, "done": 1, "total": 3}]
    engine = {**ENGINES[0], "name": HOSTILE, "model": HOSTILE, "detail": HOSTILE}
    paused = {"state": "degraded", "detail": HOSTILE, "unrecorded": 1, "until_ns": None}
    fake.status = status(engines=[engine], recording=paused, notes=[HOSTILE], model=HOSTILE, version=HOSTILE,
                         scores={HOSTILE: [1, 5]}, default_engine=HOSTILE, log=HOSTILE, home=HOSTILE)  # fmt: skip
    home.logs.mkdir(parents=True, exist_ok=True)
    home.log.write_text(f"{HOSTILE}\n", encoding="utf-8")


async def walk(seen: Seen, home: Home) -> AsyncIterator[str]:
    """Open one after the other; the name of each while it is shown."""
    await seen.until(lambda: seen.app.desk.lost is None and rows(seen))
    for digit, place, opening in _LISTS:
        await seen.press(digit)
        await seen.until(lambda place=place: at(seen, place) and rows(seen), place)  # type: ignore[misc]
        yield place
        async for name in _dialogs(seen, place):
            yield name
        if opening is not None:
            await seen.press("g", "enter")
            await seen.until(lambda opening=opening: at(seen, opening) and rows(seen), opening)  # type: ignore[misc]
            yield opening
            async for name in _inside(seen, opening):
                yield name
            await back(seen, place)
    await seen.app.push_screen(CommandRun(home, ["note", HOSTILE.replace("\x00", ""), "--scenario"]))
    yield "command"
    await back(seen, _LISTS[-1][1])
    seen.panel.say(HOSTILE)
    yield "said"
    seen.app.desk.lost = HOSTILE
    seen.panel.daemon_changed()
    yield "banner"


_LISTS: Final = (
    ("1", Place.TRACES, Place.TRACE),
    ("2", Place.RELEASES, Place.RELEASE),
    ("3", Place.JOBS, Place.JOB),
    ("4", Place.MODELS, Place.MODEL),
    ("5", Place.LOGS, None),
    ("6", Place.STATUS, None),
)


async def _dialogs(seen: Seen, place: Place) -> AsyncIterator[str]:
    keys = {"help": "question_mark", "palette": "colon"}
    keys |= (
        {"note": "c", "score": "v", "task": "t"}
        if place is Place.TRACES
        else {"stop": "x"}
        if place is Place.JOBS
        else {}
    )
    for name, key in keys.items():
        await seen.press(key)
        await seen.until(lambda: not isinstance(seen.app.screen, Panel), f"{name} in {place}")
        yield f"{name} in {place}"
        await back(seen, place)


async def _inside(seen: Seen, place: Place) -> AsyncIterator[str]:
    """What opens from within: a release's diff, a question, a trace all unfolded, its exchange close up, dialogs."""
    if place is Place.TRACE:
        await seen.press("w")
        yield "unfolded"
        await seen.press("j", "j")
        for name, key in (("raw", "R"), ("changes", "d")):
            await seen.press(key)
            await seen.until(lambda name=name: at(seen, Place(f"trace {name}")) and rows(seen), name)  # type: ignore[misc]
            yield name
            await seen.press("Y")
            yield f"curl in {name}"
            if name == "raw":
                await seen.press("tab")
                await seen.until(lambda: _begins(seen, "response of"), "the response")
                yield "response"
            await back(seen, place)
        for name, key in (("note on it", "c"), ("score of it", "v"), ("task of it", "t")):
            await seen.press(key)
            await seen.until(lambda: not isinstance(seen.app.screen, Panel), name)
            yield name
            await back(seen, place)
    if place is Place.RELEASE:
        for name, key in (("diff", "d"), ("roll back", "b")):
            before = seen.app.screen
            await seen.press(key)
            await seen.until(lambda before=before: seen.app.screen is not before, name)  # type: ignore[misc]
            yield name
            await seen.press("escape")
            await seen.until(lambda before=before: seen.app.screen is before, name)  # type: ignore[misc]


def at(seen: Seen, place: Place) -> bool:
    return isinstance(seen.app.screen, Panel) and seen.app.screen.place == place


def rows(seen: Seen) -> bool:
    return isinstance(seen.app.screen, Panel) and bool(seen.app.screen.list.window.rows)


def _begins(seen: Seen, text: str) -> bool:
    """In any width."""
    return rows(seen) and seen.panel.list.window.rows[0].cells[0].startswith(text)


async def back(seen: Seen, place: Place) -> None:
    await seen.press("escape")
    await seen.until(lambda: at(seen, place), f"back in {place}")


def strips(seen: Seen) -> list[Any]:
    return list(seen.app.screen._compositor.render_strips())


Check = Callable[[Seen, str], None]
