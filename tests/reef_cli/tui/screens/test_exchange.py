"""One exchange, close up: what changed, its bodies, the command that sends it again."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from daemon.core.paths import Home
from reef_cli.tui.screens.exchange import Changes, Raw
from tests.fakes.dashboard import FakeDaemon, record, said, session
from tests.reef_cli.tui.seen import Seen, dashboard

COVERS = ("reef_cli/tui/screens/exchange.py",)
REQUEST = {
    "model": "smollm2", "stream": True, "messages": [{"role": "user", "content": "it's \x1b[31m \u202e 漢字 " * 9}],
    "temperature": 0.5, "tools": [],
}  # fmt: skip
RESPONSE = 'data: {"choices": [{"delta": {"content": "an answer"}}]}\n\ndata: [DONE]\n\n'
CHANGES = {
    "receipt": "rec_2", "previous": "rec_1", "edge": "rewrite", "chained": False, "kept": 2, "messages": 5,
    "added": [{"role": "user", "characters": 900, "begins": "go \x1b[1mon"}],
    "broken": {
        "at": "message", "message": 2, "role": "tool", "tokens": 1234, "offset": 40, "was": "a long result of it",
        "now": "a long [cut]",
    },
    "settings": [], "prompt_tokens": 500, "cached_tokens": 38, "previous_tokens": 1400,
}  # fmt: skip


@pytest.fixture
def exchange(fake: FakeDaemon) -> FakeDaemon:
    one = session(1, title="one exchange")
    entry = {
        "record": record("rec_2", one["id"]), "new_messages": [said("user", "hello")],
        "answer": said("assistant", "an answer"), "reports": [],
    }  # fmt: skip
    fake.sessions = [one]
    fake.traces[one["id"]] = {"session": one, "records": [entry]}
    fake.closeup.bodies["rec_2"] = (json.dumps(REQUEST, ensure_ascii=False), RESPONSE)
    fake.closeup.changes["rec_2"] = CHANGES
    path = "/v1/chat/completions"
    fake.closeup.records["rec_2"] = {**entry["record"], "path": path, "scenario": "work/it's"}  # type: ignore[dict-item]
    return fake


async def opened(seen: Seen, key: str, kind: type) -> None:
    """The trace's answer, then that key."""
    await seen.until(lambda: seen.panel.list.window.rows)
    await seen.press("enter")
    await seen.shows("an answer", "embedded: ready")
    await seen.press(key)
    await seen.until(lambda: isinstance(seen.app.screen, kind) and len(seen.panel.list.window.rows) > 1)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden_raw(reef_home: Home, exchange: FakeDaemon, size: tuple[int, int]) -> None:
    async with dashboard(reef_home, size) as seen:
        await opened(seen, "R", Raw)
        await seen.shows('"tools": []')
        seen.golden(f"raw-{size[0]}x{size[1]}")


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_golden_changes(reef_home: Home, exchange: FakeDaemon, size: tuple[int, int]) -> None:
    async with dashboard(reef_home, size) as seen:
        await opened(seen, "d", Changes)
        await seen.shows("read from the cache: 38 of 500 tokens")
        seen.golden(f"changes-{size[0]}x{size[1]}")


async def test_the_other_side(reef_home: Home, exchange: FakeDaemon) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen, "R", Raw)
        await seen.shows("request of rec_2")
        await seen.press("tab")
        await seen.shows("response of rec_2", "data: [DONE]")
        await seen.press("tab")
        await seen.shows("request of rec_2")
        await seen.press("escape")
        await seen.shows("an answer")


async def test_a_body_of_which_nothing_was_kept(reef_home: Home, exchange: FakeDaemon) -> None:
    exchange.closeup.bodies["rec_2"] = ("{}", "")
    async with dashboard(reef_home) as seen:
        await opened(seen, "R", Raw)
        await seen.press("tab")
        await seen.shows("response of rec_2, 0 bytes: nothing was kept")


@pytest.mark.parametrize(
    "text", [json.dumps({"a": "x" * 10_000_000}), json.dumps({"rows": list(range(1_500_000))}), "y" * 10_000_000]
)
async def test_ten_megabytes_open_at_once(reef_home: Home, exchange: FakeDaemon, text: str) -> None:
    exchange.closeup.bodies["rec_2"] = (text, "")
    async with dashboard(reef_home) as seen:
        await opened(seen, "R", Raw)
        await seen.shows("of rec_2, 1")
        assert len(seen.panel.list.window.rows) < 3000
        for _ in range(8):
            await seen.press("ctrl+d")
        top = seen.panel.list.view[0]
        assert top > 50
        await seen.until(lambda: len(seen.panel.list.window.rows) > top + 60)


async def test_words_are_found_in_what_was_not_made_yet(reef_home: Home, exchange: FakeDaemon) -> None:
    exchange.closeup.bodies["rec_2"] = (json.dumps([f"line {n}" for n in range(9000)]), "")
    async with dashboard(reef_home) as seen:
        await opened(seen, "R", Raw)
        await seen.press("slash", *"line 8888", "enter")
        await seen.until(lambda: '"line 8888"' in seen.marked)
        await seen.press("n")
        await seen.shows("not below: line 8888")
        await seen.press("G")
        await seen.until(lambda: seen.marked.strip() == "> ]")
        await seen.press("N")
        await seen.until(lambda: '"line 8888"' in seen.marked)
        await seen.press("g")
        await seen.until(lambda: "request of rec_2" in seen.marked)


@contextmanager
def clipboard(seen: Seen) -> Iterator[list[str]]:
    """What the terminal was given to copy."""
    given: list[str] = []
    driver = seen.app._driver
    assert driver is not None
    written = driver.write

    def write(data: str) -> None:
        if "\x1b]52;c;" in data:
            given.append(
                base64.b64decode(data.partition("\x1b]52;c;")[2].partition("\x07")[0].partition("\x1b")[0]).decode()
            )
        written(data)

    driver.write = write  # type: ignore[method-assign]
    yield given


@pytest.mark.parametrize("key", ["", "R", "d"])
async def test_curl_from_each_of_the_screens(reef_home: Home, exchange: FakeDaemon, key: str) -> None:
    async with dashboard(reef_home) as seen:
        await opened(seen, key or "end", {"R": Raw, "d": Changes, "": object}[key])
        with clipboard(seen) as given:
            await seen.press("Y")
            await seen.shows("sent to the terminal: rec_2 as a curl command")
        (command,) = given
        assert command.startswith(
            'curl -sS --noproxy \'*\' "$REEF_URL"/v1/chat/completions -H "Authorization: Bearer $REEF_TOKEN"'
        )
        assert "'x-reef-scenario: work/it'\"'\"'s'" in command
        assert "\\u001b" in command
        assert "\x1b" not in command


@pytest.mark.parametrize(("key", "kind", "word"), [("R", Raw, "temperature"), ("d", Changes, "read from the cache")])
async def test_keys_of_both_screens(
    reef_home: Home, exchange: FakeDaemon, key: str, kind: type[Raw | Changes], word: str
) -> None:
    async with dashboard(reef_home, (120, 30)) as seen:
        await opened(seen, key, kind)
        await seen.shows(word)
        await seen.press("slash", *word, "enter")
        await seen.until(lambda: word in seen.marked)
        await seen.press("n")
        await seen.shows(f"not below: {word}")
        await seen.press("N")
        await seen.shows(f"not above: {word}")
        for program in ("e", "p"):
            await seen.press("g", program)
            await seen.shows("this terminal cannot be handed to another program")
        await seen.press("y")
        await seen.shows("sent to the terminal: ")
        await seen.press("question_mark")
        await seen.shows(f"Keys in {seen.app.screen_stack[-2].place}")  # type: ignore[attr-defined]
        await seen.press("escape", "q")
        await seen.shows("an answer")


async def test_what_the_daemon_does_not_have_is_said(reef_home: Home, exchange: FakeDaemon) -> None:
    exchange.closeup.bodies.clear()
    exchange.closeup.changes.clear()
    async with dashboard(reef_home, (120, 24)) as seen:
        await seen.until(lambda: seen.panel.list.window.rows)
        await seen.press("enter")
        await seen.shows("an answer")
        for key in ("R", "d"):
            await seen.press(key)
            await seen.shows("this daemon does not know")
            await seen.press("escape")
            await seen.shows("an answer")
