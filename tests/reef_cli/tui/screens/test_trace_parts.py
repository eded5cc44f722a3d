"""Each kind of part of a trace, as a person reads it; and the keys that fold, find and read elsewhere."""

import json
from typing import Any

import pytest

from daemon.core.paths import Home
from reef_cli.tui.screens.trace import Trace
from tests.fakes.dashboard import FakeDaemon, record, said, session
from tests.reef_cli.tui.seen import Seen, dashboard

HOSTILE = "\x1b]52;c;cm0gLXJm\x07 [red]not red[/red] \x9b2J \u202egnp.exe"
PATCH = "*** Begin Patch\n*** Update File: src/b.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2"
CODE = "Look:\n\n```python\ndef f(x):\n    return 'one' + str(x)  # why\n```\n\nThat is it."


def use(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "arguments": json.dumps(arguments)}


def result(id: str, content: str, **changes: Any) -> dict[str, Any]:
    return {"type": "tool_result", "id": id, "content": content, "is_error": False, **changes}


def kinds() -> dict[str, Any]:
    """One of each."""
    one = session(1, title="one of each kind", turns=3)
    image = {"type": "image", "media_type": "image/png", "source": "sha256:0badcafe", "bytes": 12_345}
    edit = [{"oldText": "    return 1", "newText": "    return 2"}]
    first = {
        "record": record("rec_1", one["id"], seq=1, first_byte_us=230_000, cost_usd=0.0123),
        "new_messages": [said("system", "You are careful. " * 20), said("user", "fix it", image)],
        "answer": said(
            "assistant", {"type": "thinking", "text": "first the file"}, CODE,
            use("c1", "read", path="src/a.py", offset=3),
            use("c2", "bash", command="git diff &&\nmake test", timeout=60),
            use("c3", "edit", path="src/a.py", edits=edit), use("c4", "write", path="new.md", content="# new\ntext"),
            use("c5", "apply_patch", input=PATCH), use("c6", "grep", pattern="def f", path="src"),
        ),
        "reports": [], "signals": [{"name": "tool", "value": 1}, {"name": "retried", "value": None}],
    }  # fmt: skip
    second: dict[str, Any] = {
        "record": record("rec_2", one["id"], edge="fork", stream=False),
        "new_messages": [
            said("tool", result("c1", "def f():\n    return 1  # one")), said("tool", result("c2", DIFF)),
            said("tool", result("c3", f"no such text {HOSTILE}", is_error=True)),
            said("tool", result("c6", "a picture", images=[{**image, "bytes": None}])),
        ],
        "answer": said("assistant", "Done."),
        "reports": [{"id": "rep_1", "score": 1.0, "feedback": f"good {HOSTILE}", "undone_ns": None, "metadata": {}}],
    }  # fmt: skip
    beside = {
        "record": record("rec_3", one["id"], seq=3, kind="subagent", edge="spawn", preview="a sub-agent's answer"),
        "new_messages": [said("user", "look for it")], "answer": said("assistant", "a sub-agent's answer, whole"),
        "reports": [],
    }  # fmt: skip
    return {"session": one, "records": [first, beside, {**second, "record": {**second["record"], "seq": 4}}]}


@pytest.fixture
def each(fake: FakeDaemon) -> FakeDaemon:
    trace = kinds()
    fake.sessions = [trace["session"]]
    fake.traces[trace["session"]["id"]] = trace
    return fake


async def opened(seen: Seen) -> None:
    await seen.until(lambda: seen.panel.list.window.rows)
    await seen.press("enter")
    await seen.shows("Done.", "embedded: ready")


def shown(seen: Seen) -> list[str]:
    """All lines, also those that are not in view."""
    return [row.cells[0] for row in seen.panel.list.window.rows]


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden_folded_and_unfolded(reef_home: Home, each: FakeDaemon, size: tuple[int, int]) -> None:
    async with dashboard(reef_home, size) as seen:
        await opened(seen)
        await seen.press("g")
        await seen.until(lambda: "one of each kind" in seen.marked)
        seen.golden(f"trace-parts-{size[0]}x{size[1]}")
        await seen.press("w", "j", "j")
        await seen.shows("▾ system")
        seen.golden(f"trace-unfolded-{size[0]}x{size[1]}")
        for _ in range(3 if size[0] == 80 else 2):
            await seen.press("ctrl+d", "ctrl+d")
        seen.golden(f"trace-diffs-{size[0]}x{size[1]}")
        await seen.press("G")
        seen.golden(f"trace-end-{size[0]}x{size[1]}")


async def test_everything_unfolds_and_folds_again(reef_home: Home, each: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        folded = shown(seen)
        await seen.press("w")
        await seen.until(lambda: not any("▸" in line for line in shown(seen)))
        await seen.select("tool bash", "k")
        await seen.press("space")
        await seen.until(lambda: "▸ tool bash" in seen.marked)
        await seen.press("w")
        await seen.until(lambda: not any("▸" in line for line in shown(seen)))
        await seen.press("w")
        await seen.until(lambda: shown(seen) == folded)
        assert "tool bash" in seen.marked


async def test_what_happened_beside_the_conversation_is_a_line_each(reef_home: Home, each: FakeDaemon) -> None:
    async with dashboard(reef_home, (120, 36)) as seen:
        await opened(seen)
        assert "a sub-agent's answer, whole" not in "\n".join(shown(seen))
        await seen.select("▸ 11:59:00 · subagent · a sub-agent's answer · rec_3", "k")
        await seen.press("enter")
        await seen.until(lambda: "  a sub-agent's answer, whole" in shown(seen))
        await seen.press("enter")
        await seen.until(lambda: "a sub-agent's answer, whole" not in "\n".join(shown(seen)))
        await seen.press("g", "slash", *"answer, whole", "enter")
        await seen.until(lambda: "a sub-agent's answer, whole" in seen.marked)


async def test_calls_and_results_read_well(reef_home: Home, each: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        lines = shown(seen)
        assert [line for line in lines if "tool " in line][:6] == [
            "▸ tool read src/a.py", "▸ tool bash $ git diff && …", "▸ tool edit src/a.py", "▸ tool write new.md",
            "▸ tool apply_patch src/b.py", "▸ tool grep src",
        ]  # fmt: skip
        assert "first byte 230 ms, 20 tok/s" in " ".join(lines)
        assert "$0.0123" in " ".join(lines)
        assert "  [image image/png, 12 kB, sha256:0badcafe]" in lines
        assert "then: a tool ended with 1, it was tried again" in lines
        await seen.press("w")
        await seen.until(lambda: "-    return 1" in "\n".join(shown(seen)))
        text = "\n".join(shown(seen))
        for line in (
            "  git diff &&",
            "  make test",
            "  timeout: 60",
            "  +# new",
            "  +x = 2",
            "  pattern: def f",
            "  offset: 3",
        ):
            assert line in text.splitlines()
        assert text.replace("\n", "").isprintable()


def styles(seen: Seen, text: str) -> list[tuple[str, str]]:
    """What stands out in the first line that has the text: piece and style."""
    row = next(row for row in seen.panel.list.window.rows if text in row.cells[0])
    return [(row.cells[0][span.start : span.end], span.style) for span in row.spans] or [
        (row.cells[0].strip(), row.style)
    ]


async def test_code_and_diffs_have_their_colours(reef_home: Home, each: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("w")
        await seen.until(lambda: "+    return 2" in "\n".join(shown(seen)))
        assert styles(seen, "return 'one'") == [
            ("return", "keyword"), ("'one'", "string"), ("str", "name"), ("# why", "comment"),
        ]  # fmt: skip
        assert ("return", "keyword") in styles(seen, "return 1  # one")  # what was read from a file
        assert styles(seen, "-    return 1") == [("-    return 1", "removed")]
        assert styles(seen, "+x = 2") == [("+x = 2", "added")]
        assert styles(seen, "@@ -1,2") == [("@@ -1,2 +1,2 @@", "hunk")]
        assert styles(seen, "make test")[0][1] != ""


async def test_words_are_found_also_where_they_are_folded(reef_home: Home, each: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.press("n")
        await seen.shows("nothing is looked for yet: / finds")
        await seen.press("g", "slash", *"Return", "enter")
        await seen.until(lambda: "return 'one'" in seen.marked)
        found = []
        for _ in range(20):
            await seen.press("n")
            await seen.settle()
            found.append(seen.marked)
            if "not below: return" in seen.screen:
                break
        assert [line for line in found if "return 1" in line]
        assert "+    return 2" in found[-1]
        await seen.press("N")
        await seen.until(lambda: "-    return 1" in seen.marked)
        strips = [strip for strip in seen.app.screen._compositor.render_strips() if "return" in strip.text]
        hits = [piece.text for strip in strips for piece in strip if piece.style and piece.style.underline]
        assert set(hits) == {"return"}
        await seen.press("slash", *"q", "escape")
        await seen.until(lambda: seen.panel.list.hit == "")
        await seen.press("n")
        await seen.shows("nothing is looked for yet")


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden_find(reef_home: Home, each: FakeDaemon, size: tuple[int, int]) -> None:
    async with dashboard(reef_home, size) as seen:
        await opened(seen)
        await seen.press("g", "slash", *"return q")  # every letter is a letter here
        await seen.shows("return q")
        seen.golden(f"trace-find-{size[0]}x{size[1]}")


@pytest.mark.parametrize("width", [20, 40, 60, 240])
async def test_any_width(reef_home: Home, each: FakeDaemon, width: int) -> None:
    async with dashboard(reef_home, (width, 20)) as seen:
        await seen.until(lambda: seen.panel.list.window.rows)
        await seen.press("enter")
        await seen.until(lambda: isinstance(seen.app.screen, Trace) and len(seen.panel.list.window.rows) > 5)
        await seen.press("w", "g", *["ctrl+d"] * 6)
        assert {strip.cell_length for strip in seen.app.screen._compositor.render_strips()} == {width}
        await seen.pilot.resize_terminal(60, 20)
        await seen.until(lambda: {strip.cell_length for strip in seen.app.screen._compositor.render_strips()} == {60})


@pytest.mark.parametrize("key", ["e", "p"])
async def test_a_terminal_that_cannot_be_handed_over_is_said(reef_home: Home, each: FakeDaemon, key: str) -> None:
    async with dashboard(reef_home, (120, 36)) as seen:
        await opened(seen)
        await seen.press(key)
        await seen.shows("this terminal cannot be handed to another program")


async def test_a_single_line_of_ten_megabytes_is_read_without_a_pause(reef_home: Home, each: FakeDaemon) -> None:
    trace = each.traces[each.sessions[0]["id"]]
    trace["records"][2]["new_messages"] = [said("tool", result("c1", "y" * 10_000_000))]
    async with dashboard(reef_home) as seen:
        await opened(seen)
        await seen.select("▸ result", "k")
        assert "[10000000 characters]" in "".join(shown(seen))
        await seen.press("enter")
        await seen.until(lambda: "▾ result" in seen.marked)
        assert "  … cut here; all 10000000 characters: p, or e" in shown(seen)


@pytest.mark.parametrize("text", [HOSTILE, "[1] [bold", "[/]", "[@click=app.bell]x[/]", "\\[", "$x {y} %s"])
async def test_nothing_is_markup(reef_home: Home, each: FakeDaemon, text: str) -> None:
    trace = each.traces[each.sessions[0]["id"]]
    trace["session"]["title"] = text
    trace["records"][2]["answer"] = said(
        "assistant", text, {"type": "thinking", "text": text}, use("c", text, command=text)
    )
    trace["records"][2]["record"]["error"] = text
    trace["records"][2]["record"]["model"] = text
    async with dashboard(reef_home) as seen:
        await seen.until(lambda: seen.panel.list.window.rows)
        await seen.press("enter")
        await seen.until(lambda: "  error" in seen.screen)
        await seen.press("w")
        await seen.until(lambda: "▾ thinking" in "".join(shown(seen)))
        assert "".join(shown(seen)).isprintable()
        kept = text if text.isprintable() else "\\x1b]52;c;cm0gLXJm\\x07"
        assert sum(kept in line for line in shown(seen)) >= 4
