"""An agent that Reef has never heard of, described by one file: found, checked, given its release, taken away.

The agent is a script on PATH that asks a model with curl. No code of Reef's knows it.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.adapters.conftest import tree
from tests.fakes import chain
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon
from tests.fakes.provider import Provider, Turn, running_provider

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on this machine")

#: Rules from a file, the model's name from its settings, "-m NAME" from the words before the question.
AGENT = r"""#!/bin/sh
[ "$1" != --version ] || { echo "curly 3.2.1"; exit; }
model=$(cat "$CURLY_HOME/model")
[ "$1" != -m ] || { model=$2; shift 2; }
rules=$(cat "$CURLY_HOME/RULES.txt" 2>/dev/null | tr '\n' ' ')
skills=$(ls "$CURLY_HOME/skills" 2>/dev/null | tr '\n' ' ')
body="{\"model\":\"$model\",\"messages\":[{\"role\":\"system\",\"content\":\"$rules has $skills\"},"
body="$body{\"role\":\"user\",\"content\":\"$1\"}]}"
echo "asked $1" >>"$CURLY_HOME/history"
curl -sf -H 'content-type: application/json' -H "authorization: Bearer $CURLY_KEY" "$CURLY_URL/chat/completions" \
    -d "$body" | sed 's/.*"content": *"\([^"]*\)".*/\1/' | head -c 200
exit ${CURLY_EXIT:-0}
"""
ADAPTER = {
    "title": "Curly",
    "command": "reef-curly",
    "summary": "asks with curl",
    "program": "curly",
    "says_version": "curly $VERSION",
    "check": ["Hello"],
    "modes": {
        "isolated": {
            "release": {"RULES.txt": "$REEF_RULES"},
            "session": {"model": "$REEF_MODEL_NAME"},
            "shared": ["history"],
            "seeds": {"history": "Reef\n"},
            "skills": "skills",
            "environment": {
                "CURLY_HOME": "$REEF_SESSION_DIRECTORY",
                "CURLY_URL": "$REEF_TOLD_URL/v1",
                "CURLY_KEY": "$REEF_TOKEN",
            },
        }
    },
}


class Curly:
    def __init__(self, daemon: RunningDaemon, provider: Provider, user: Path) -> None:
        self.daemon, self.provider, self.home = daemon, provider, daemon.home
        self.environment = {
            **os.environ,
            "HOME": str(user),
            "PATH": f"{user / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY),
            "REEF_HOME": str(self.home.root),
        }

    def run(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            words,
            cwd=self.environment["HOME"],
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def reef(self, *words: str) -> Any:
        done = self.run(sys.executable, "-m", "reef_cli.main", "harness", *words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def installed(self) -> dict[str, Any]:
        return {name: tree(self.home.root / name) for name in ("agents", "bin") if (self.home.root / name).exists()}


@pytest.fixture
def curly(reef_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Curly]:
    user = tmp_path / "user"
    (user / "bin").mkdir(parents=True)
    program = user / "bin" / "curly"
    program.write_text(AGENT)
    program.chmod(0o755)
    (reef_home.root / "adapters").mkdir(mode=0o700)
    (reef_home.root / "adapters" / "curly.json").write_text(json.dumps(ADAPTER))
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}", "REEF_TEST_KEY": "k"}
    with (
        running_provider([Turn("It rains.")]) as provider,
        running_daemon(reef_home, provider.config(key="env:REEF_TEST_KEY"), environment=path) as daemon,
    ):
        yield Curly(daemon, provider, user)


def script(daemon: RunningDaemon, adapter: str) -> str:
    connection = HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    connection.request(
        "GET", f"/reef/harness/install?adapter={adapter}", headers={"authorization": f"Bearer {daemon.agent_token}"}
    )
    response = connection.getresponse()
    text = response.read().decode()
    assert response.status == 200, text
    connection.close()
    return text


def test_from_the_file_to_the_end(curly: Curly) -> None:
    user, before = tree(Path(curly.environment["HOME"])), curly.installed()
    (row,) = [row for row in curly.reef("list")["items"] if row["adapter"] == "curly"]
    assert (row["version"], row["command"]) == (None, None)
    planned = curly.reef("install", "--adapter", "curly", "--dry-run")
    assert (planned["version"], planned["packages"]) == ("3.2.1", [])
    made = curly.reef("install", "--adapter", "curly", "--scenario", "work")
    assert made["version"] == "3.2.1"
    assert curly.provider.requests == []  # it was checked, and no model was asked

    release = chain.publish(curly.home, scenario="work")
    done = curly.run(made["command"], "weather?", CURLY_EXIT="5")
    assert (done.returncode, done.stdout, done.stderr) == (5, "It rains.", "")
    asked = curly.provider.requests[-1].json()
    rules, question = (message["content"] for message in asked["messages"])
    told = f"Answer briefly.  - Use uv, not pip.  [reef release {release.id}]"
    assert rules == f"{told} has greet sum "  # it has no prompts: a skill more
    assert question == "weather?"
    (session,) = curly.daemon.get("/reef/sessions?scenario=work")["items"]
    assert (session["agent"], session["cwd"]) == ("curly", curly.environment["HOME"])
    assert curly.run(made["command"], "--version").stdout == "curly 3.2.1\n"
    history = curly.home.agents / "curly" / "user" / "history"
    assert history.read_text() == "Reef\nasked weather?\n"

    told = curly.reef("uninstall", "--adapter", "curly", "--purge")
    assert told["kept"] == []
    assert curly.installed() == before
    assert tree(Path(curly.environment["HOME"])) == user


def test_both_ways_leave_the_same_to_the_byte(curly: Curly) -> None:
    curly.reef("install", "--adapter", "curly")
    applied = curly.installed()
    curly.reef("uninstall", "--adapter", "curly")
    piped = subprocess.run(
        ["sh"], input=script(curly.daemon, "curly"), env=curly.environment, capture_output=True, text=True, check=False
    )
    assert piped.returncode == 0, piped.stderr
    assert curly.installed() == applied


def test_one_that_does_not_ask_reef_is_not_installed(curly: Curly) -> None:
    deaf = json.loads(json.dumps(ADAPTER))
    deaf["modes"]["isolated"]["environment"]["CURLY_URL"] = "http://127.0.0.1:1"
    (curly.home.root / "adapters" / "curly.json").write_text(json.dumps(deaf))
    done = curly.run(sys.executable, "-m", "reef_cli.main", "harness", "install", "--adapter", "curly")
    assert done.returncode == 1
    assert "curly was started and did not ask Reef" in done.stderr
