"""``python -m bench.screenshots [--record MODEL.gguf]``: the README's pictures of the dashboard, in ``assets/``.

They show ``assets/demo.jsonl``, a recording of the real daemon with the default model and some real exchanges, played
by the same screens; ``--record`` makes it anew. Textual draws them.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from textual.pilot import Pilot

from daemon.core.client import TIMEOUT
from daemon.core.discovery import read_state
from daemon.core.paths import Home
from reef_cli.lifecycle import ensure_daemon, stop_daemon
from reef_cli.tui.app import Dashboard
from reef_cli.tui.recording import Tape
from reef_cli.tui.replay import Replay, load
from reef_cli.tui.settings import Settings

_ASSETS: Final = Path(__file__).parents[1] / "assets"
DEMO: Final = _ASSETS / "demo.jsonl"
_SIZE: Final = (100, 28)
_ANSWER: Final = 120
_QUESTIONS: Final = (
    ("How do I install requests?",),
    ("Name the first three planets.", "Which of them is the hottest?"),
    ("What is a mutex?",),
    ("What is the capital of Japan?", "And of Germany?", "Say both in one sentence."),
)
#: A picture's name and what is pressed for it, one after the other.
_PICTURES: Final = (("traces", ()), ("trace", ("enter",)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.screenshots", description="Pictures of the dashboard.")
    parser.add_argument("--record", type=Path, metavar="MODEL.gguf", help="make the recording anew, with this model")
    options = parser.parse_args()
    os.environ["TZ"] = "UTC"
    time.tzset()
    _ASSETS.mkdir(exist_ok=True)
    if options.record:
        _record(options.record)
    for name, svg in asyncio.run(drawn(Replay(load(DEMO), speed=100))).items():
        (_ASSETS / f"{name}.svg").write_text(svg, "utf-8")
        print(f"assets/{name}.svg")
    return 0


def _record(model: Path) -> None:
    """Exchanges and feedback while the dashboard watches and looks at all that the pictures show."""
    DEMO.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="reef-") as directory:
        home = Home(Path(directory))
        home.prepare()
        home.config.write_text("server: {port: 0}\n")
        client = ensure_daemon(home)
        tape = Tape(DEMO)
        try:
            list(client.lines("/reef/models", {"source": str(model), "use": True}))
            receipts = [_conversation(home, questions) for questions in _QUESTIONS]
            client.post("/reef/report", {"references": [receipts[0]], "score": 0.0})
            client.post("/reef/report", {"references": [receipts[0]], "feedback": "Use uv, not pip."})
            client.post("/reef/report", {"references": [receipts[-1]], "score": 1.0})
            app = Dashboard(home, now=time.time_ns, connect=lambda timeout: tape.client(home.socket, timeout))
            asyncio.run(_visited(app))
        finally:
            tape.close()
            stop_daemon(home)


def _conversation(home: Home, questions: tuple[str, ...]) -> str:
    """The receipt of its last answer."""
    state = read_state(home)
    assert state is not None
    said: list[dict[str, str]] = []
    receipt = ""
    for question in questions:
        said.append({"role": "user", "content": question})
        connection = HTTPConnection("127.0.0.1", state.port, timeout=TIMEOUT * 4)
        headers = {
            "content-type": "application/json", "authorization": f"Bearer {home.agent_token.read_text()}",
            "x-reef-adapter": "pi",
        }  # fmt: skip
        body = {"model": "default", "max_tokens": _ANSWER, "temperature": 0, "messages": said}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        response = connection.getresponse()
        receipt = response.getheader("x-reef-agent-record-id") or ""
        said.append({"role": "assistant", "content": json.loads(response.read())["choices"][0]["message"]["content"]})
        connection.close()
    return receipt


async def _visited(app: Dashboard) -> None:
    async with app.run_test(size=_SIZE) as pilot:
        for _, keys in _PICTURES:
            await pilot.press(*keys)
            await _settled(app, pilot, lambda: True)


async def drawn(player: Replay) -> dict[str, str]:
    """Each picture at the recording's end, by its name."""
    app = Dashboard(
        Home(Path("/nonexistent")), now=player.now_ns, settings=Settings(theme="dark"), connect=lambda _timeout: player
    )
    pictures = {}
    async with app.run_test(size=_SIZE) as pilot:
        for name, keys in _PICTURES:
            await pilot.press(*keys)
            await _settled(app, pilot, lambda: not player.left())
            svg = app.export_screenshot(title="reef")
            pictures[name] = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # it would be fetched
    player.stop()
    return pictures


async def _settled(app: Dashboard, pilot: Pilot[None], ready: Callable[[], bool]) -> None:
    """Until the screen has stood still for a while."""
    still, before = 0, ""
    while still < 10 or not ready():
        await pilot.pause(0.1)
        shown = app.export_screenshot()
        still, before = (still + 1 if shown == before else 0), shown


if __name__ == "__main__":
    sys.exit(main())
