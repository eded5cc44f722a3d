"""kill -9 of a wrapped agent at any moment, of its wrapper before that, and now and then of the daemon.

Whatever answer reached the agent is in the records; no file is torn; the next start works and tidies up. 40 kills as a
rule, 400 with REEF_TEST_SOAK=1.
"""

import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from adapters import active, delivery, shelf
from adapters.session import Place
from daemon.core.discovery import read_state
from daemon.core.paths import Home
from daemon.store.db import Store
from reef_cli.lifecycle import stop_daemon
from reef_cli.wrapped import key_of
from tests.conftest import new_home
from tests.e2e.agents import AGENTS, installed, node
from tests.e2e.test_kill import left_behind
from tests.fakes import agents, chain, shapes
from tests.fakes.daemon import until
from tests.fakes.provider import Provider, Turn, bash, running_provider

pytestmark = pytest.mark.slow

KILLS = 400 if os.environ.get("REEF_TEST_SOAK") else 40
#: Asks for ever; what it saw to the end, by the receipt it came with, is a line of GOT.
_ASKER = r"""#!/bin/sh
[ "$1" != --version ] || { echo "asker 1.0"; exit; }
body='{"model":"default","stream":true,"messages":[{"role":"user","content":"'$(head -n 1 "$ASKER_HOME/RULES.txt")'"}]}'
for n in $(seq "${1:-1000}"); do
    curl -sfN --noproxy '*' -D "$ASKER_HOME/head" -o "$ASKER_HOME/body" -H 'content-type: application/json' \
        -H "authorization: Bearer $ASKER_KEY" "$ASKER_URL/chat/completions" -d "$body" || exit 9
    sed -n 's/^x-reef-agent-record-id: //p' "$ASKER_HOME/head" | tr -d '\r' >>"$GOT"
    echo "asked" >>"$ASKER_HOME/history"
done
"""
_ADAPTER = {
    "title": "Asker",
    "command": "reef-asker",
    "summary": "asks with curl",
    "program": "asker",
    "check": ["1"],
    "modes": {
        "isolated": {
            "release": {"RULES.txt": "$REEF_RULES"},
            "shared": ["history"],
            "seeds": {"history": ""},
            "skills": "skills",
            "environment": {
                "ASKER_HOME": "$REEF_SESSION_DIRECTORY",
                "ASKER_URL": "$REEF_TOLD_URL/v1",
                "ASKER_KEY": "$REEF_TOKEN",
            },
        }
    },
}


class Killed:
    """An agent that is started again and again, and killed; ``chance`` says when."""

    def __init__(self, home: Home, provider: Provider, folder: Path) -> None:
        self.home, self.provider, self.folder = home, provider, folder
        self.seed = random.SystemRandom().randrange(1 << 32)
        self.chance = random.Random(self.seed)
        self.killed: Counter[str] = Counter()
        self.releases = 0
        self.environment = {**os.environ, "HOME": str(folder), "GOT": str(folder / "got")}

    def kill_one(self, words: list[str], longest: float) -> None:
        """Start it, and end its whole group after a while; the daemon too, one time in eight."""
        started = subprocess.Popen(
            words, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        if self.chance.random() < 0.25:
            self.publish()  # while it starts, or runs
        time.sleep(self.chance.random() * longest)
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        self.killed["agent" if started.wait() == -signal.SIGKILL else "ended before"] += 1
        if self.chance.random() < 0.125 and (state := read_state(self.home)) is not None:
            with suppress(ProcessLookupError):
                os.kill(state.pid, signal.SIGKILL)
                self.killed["daemon"] += 1

    def publish(self) -> None:
        self.releases += 1
        chain.publish(self.home, f"job_{self.releases}", {**chain.HARNESS, "rules.md": f"Rule {self.releases}.\n"})

    def whole(self, words: list[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            words, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=180, check=False,
        )  # fmt: skip

    def said(self) -> str:
        return f"seed {self.seed}: {dict(self.killed)}, {self.releases} releases"


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Killed]:
    with new_home() as home, running_provider([Turn("An answer of several words, so that it takes a while.")]) as one:
        one.pace = 0.005
        home.prepare()
        home.config.write_text(one.config())
        yield Killed(home, one, tmp_path)
        with suppress(Exception):
            stop_daemon(home)
        subprocess.run(["chmod", "-R", "u+w", str(home.root)], check=True)


def only_news(said: str) -> bool:
    """Nothing but a release that no run has had yet."""
    return all(line.startswith("Reef: release r") for line in said.splitlines())


def check_what_is_left(killed: Killed, name: str) -> None:
    """After a run that ended by itself: one session's folder, the head active and as it was signed, nothing torn."""
    place = Place(killed.home.agents / name)
    assert len(list(place.sessions.iterdir())) == 1
    now = active.load(place.active, "default")
    assert now is not None
    assert now.number == killed.releases
    if now.number:
        kept = shelf.find(place.shelf, now.release_id, "default")
        assert kept is not None
        assert delivery.checked(kept, key_of(killed.home), now.seal).number == killed.releases
    stop_daemon(killed.home)
    with suppress(AssertionError):
        until(lambda: not left_behind(killed.home), "nothing is left behind", 60)
    assert left_behind(killed.home) == []


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on this machine")
def test_an_agent_that_one_file_describes(killed: Killed) -> None:
    program = killed.folder / "asker"
    program.write_text(_ASKER)
    program.chmod(0o755)
    (killed.home.root / "adapters").mkdir(mode=0o700)
    (killed.home.root / "adapters" / "asker.json").write_text(json.dumps(_ADAPTER))
    command = agents.wrap(killed.home, "asker", [str(program)])
    got = killed.folder / "got"
    for _ in range(KILLS):
        killed.kill_one([command], 1.5)
    done = killed.whole([command, "2"])
    assert (done.returncode, only_news(done.stderr)) == (0, True), (killed.said(), done)
    if killed.releases:
        asked = killed.provider.requests[-1].json()["messages"][0]["content"]
        assert asked == f"Rule {killed.releases}."
    check_what_is_left(killed, "asker")
    receipts = got.read_text().split()
    store = Store.open(killed.home.database)
    try:
        ends = Counter(store.record(receipt).end.value for receipt in receipts)  # raises where one is missing
        torn = store.verify()
    finally:
        store.close()
    print(f"{killed.said()}, {len(receipts)} answers seen")
    assert (dict(ends), torn) == ({"ok": len(receipts)}, [])
    assert len(receipts) > KILLS
    history = (killed.home.agents / "asker" / "user" / "history").read_text()
    assert set(history.splitlines()) == {"asked"}


def _answers(folder: Path) -> set[str]:
    """What Pi wrote down of answers: they reached it. A last line may be half written, which is Pi's to mend."""
    found = set()
    for file in folder.rglob("*.jsonl"):
        for line in file.read_text("utf-8", "replace").splitlines():
            with suppress(ValueError):
                message: Any = json.loads(line).get("message") or {}
                if message.get("role") == "assistant":
                    found |= {part["text"] for part in message["content"] if part.get("type") == "text"}
    return found


def test_pi(killed: Killed) -> None:
    pi, count = AGENTS["pi"], itertools.count()
    killed.provider.reply = lambda asked: Turn(
        f"Answer {next(count)}.", (bash("true"),) if shapes.Chat(asked, 0).answered() < 3 else ()
    )
    command = agents.wrap(killed.home, "pi", [str(node("new")), str(installed(pi) / pi.program)])
    sessions = killed.home.agents / "pi" / "user" / "sessions"
    longest = 2.0
    for n in range(KILLS // 2):
        killed.kill_one([command, "-p", "hello"], longest)
        if n % 4 == 3 and not killed.killed["ended before"]:
            longest *= 1.5  # until some come to their end: then moments of the whole run were hit
    for words in (["-p", "hello"], ["-c", "-p", "and on"]):
        done = killed.whole([command, *words])
        assert (done.returncode, done.stdout[:7]) == (0, "Answer "), (killed.said(), done)
        assert only_news(done.stderr), (killed.said(), done)
    check_what_is_left(killed, "pi")
    seen = _answers(sessions)
    db = sqlite3.connect(f"file:{killed.home.database}?mode=ro", uri=True)
    kept = {
        " ".join(preview.split()[:2]) for (preview,) in db.execute("""SELECT preview FROM record WHERE "end" = 'ok'""")
    }
    db.close()
    print(f"{killed.said()}, {len(seen)} answers seen, {len(kept)} kept")
    assert len(seen) > 8
    assert seen - kept == set()
