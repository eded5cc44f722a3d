"""Every captured exchange of real agents, recorded by the daemon and read in the dashboard, narrow and wide.

An extra, like `tests.extra.test_cases`: it runs where the captures are, and says so where they are not.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len

from daemon.core.paths import Home
from reef_cli.tui.screens.trace import Trace
from tests.extra.test_cases import AGENTS, CAPTURES
from tests.extra.test_replay import REPLAYED, Again, Capture, captures, daemon, provider, replayed  # noqa: F401  (fixtures)
from tests.extra.test_sessions import answer_to
from tests.fakes.daemon import RunningDaemon
from tests.reef_cli.tui.seen import Seen, dashboard
from tests.reef_cli.tui.test_hostile import inert

pytestmark = pytest.mark.skipif(not AGENTS, reason=f"no captures at {CAPTURES}")
SIZES = ((40, 24), (80, 24), (240, 60))
#: What a stream ends with.
ENDS = {
    "messages": b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
    "responses": b'event: response.completed\ndata: {"type": "response.completed", "response": {"id": "resp_1"}}\n\n',
}


def calls_and_results(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each call and the result of one in a request, whatever its dialect: (``call`` or ``result``, what is to be
    seen of it)."""
    said = body.get("messages") or body.get("input") or []
    for item in said:
        parts = item["content"] if isinstance(item.get("content"), list) else []
        for one in (item, *parts, *item.get("tool_calls", ())):
            kind = one.get("type")
            if kind in ("function", "function_call", "tool_use"):
                yield "call", one.get("function", one)["name"]
            elif kind == "tool_result":
                yield "result", text(one["content"])
            elif kind == "function_call_output":
                yield "result", text(one["output"])
        if item.get("role") == "tool":
            yield "result", text(item["content"])


def text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def squeezed(text: str) -> str:
    return "".join(text.split())


async def read(seen: Seen, session: dict[str, Any]) -> str:
    """All lines of a session's trace, each looked at; what it says without blanks."""
    seen.app.push_screen(Trace(seen.app.desk, session["id"]))
    await seen.until(lambda: isinstance(seen.panel, Trace) and seen.panel.list.window.rows)
    folded = len(seen.panel.list.window.rows)
    await seen.press("w")
    await seen.until(lambda: len(seen.panel.list.window.rows) > folded)
    await seen.press("g")
    await seen.settle()
    lines: list[str] = []
    while not lines or lines[-1] != seen.screen:
        inert(seen, session["id"])
        lines.append(seen.screen)
        await seen.press("ctrl+d")
    rows = [row.cells[0] for row in seen.panel.list.window.rows]
    width = seen.panel.list.scrollable_content_region.width
    assert all(row.isprintable() and cell_len(row) <= width - 2 for row in rows)
    await seen.press("escape")
    return squeezed("".join(rows))


def answered(agent: str) -> list[Capture]:
    """With the answers that the agent sent back: in the captures they are filler."""
    files = sorted((CAPTURES / agent).glob("*.json"))
    told = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    told = [one for one in told if one["method"] == "POST" and one["path"].startswith("/v1/")]
    found = []
    for n, capture in enumerate(captures(agent)):
        answer = answer_to(told[n], told[n + 1 :]) if capture.ok else b""
        end = ENDS.get(capture.path.partition("?")[0].rpartition("/")[2], b"")
        found.append(replace(capture, answer=answer + end if answer else capture.answer))
    return found


@pytest.mark.parametrize("agent", REPLAYED or ["none"])
async def test_every_trace_is_read_at_every_width(
    agent: str,
    daemon: RunningDaemon,  # noqa: F811
    provider: Again,  # noqa: F811
    module_home: Home,
) -> None:
    taken = answered(agent)
    for capture in taken:
        replayed(daemon, provider, capture, agent)
    wanted = {one for capture in taken for one in calls_and_results(json.loads(capture.body))}
    sessions = [one for one in daemon.get("/reef/sessions?limit=500")["items"] if one["scenario"] == agent]
    for size in SIZES:
        async with dashboard(module_home, size) as seen:
            await seen.until(lambda seen=seen: seen.panel.list.window.rows)  # type: ignore[misc]
            told = "".join([await read(seen, session) for session in sessions])
        for session in sessions:
            assert squeezed(session["title"]) in told
        for kind, what in wanted:
            first = next((line for line in what.splitlines() if line.strip()), "")[: size[0] // 2]
            assert squeezed(f"tool {what}" if kind == "call" else first) in told, (size, kind, what)
