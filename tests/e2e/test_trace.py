"""A trace in a real terminal: read in the person's editor and pager, and back; nothing of it stays on the disk."""

import json
import shlex
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.paths import Home
from tests.e2e.test_dashboard import Tmux
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon, until
from tests.fakes.provider import Turn, bash, running_provider

#: Notes what it was given, then waits for a key: as an editor does.
PROGRAM = """
import json, os, pathlib, sys
path = pathlib.Path(sys.argv[-1])
modes = {"mode": os.stat(path).st_mode, "folder": os.stat(path.parent).st_mode}
seen = {"text": path.read_text(), "path": str(path), **modes}
pathlib.Path(sys.argv[1]).write_text(json.dumps(seen))
print("reading outside"); sys.stdout.flush(); input()
"""


@pytest.fixture
def daemon(reef_home: Home) -> Iterator[RunningDaemon]:
    turn = Turn("an answer \x1b[31m with colours", (bash("ls -la"),), "hm")
    with running_provider((turn,)) as provider, running_daemon(reef_home, provider.config()) as running:
        yield running


@pytest.fixture
def tmux(reef_home: Home) -> Iterator[Tmux]:
    window = Tmux(reef_home.root)
    yield window
    window.run("kill-server")


def test_it_is_read_outside_and_back(daemon: RunningDaemon, tmux: Tmux, tmp_path: Path) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "what is asked"}]}
    assert daemon.post("/v1/chat/completions", body)[0] == 200
    program, told = tmp_path / "editor.py", tmp_path / "told.json"
    program.write_text(PROGRAM)
    command = f"{sys.executable} {program} {told}"
    words = [
        "env",
        f"REEF_HOME={daemon.home.root}",
        f"PYTHONPATH={REPOSITORY}",
        f"VISUAL={command}",
        f"PAGER={command}",
    ]
    run = shlex.join([*words, sys.executable, "-m", "reef_cli.main"])
    tmux.run("new-session", "-d", "-s", "reef", "-x", "80", "-y", "24", f"{run}; echo left with $?; sleep 60")
    tmux.shows("what is asked")
    tmux.press("Enter")
    tmux.shows("tool bash $ ls -la")
    for key in ("e", "p"):
        told.unlink(missing_ok=True)
        tmux.press(key)
        tmux.shows("reading outside")
        until(told.exists, "the program's note")
        seen = json.loads(until(told.read_text, "its words"))
        assert "what is asked" in seen["text"]
        assert "> bash $ ls -la" in seen["text"]
        assert "\x1b" not in seen["text"]
        assert (stat.S_IMODE(seen["mode"]), stat.S_IMODE(seen["folder"])) == (0o600, 0o700)
        tmux.press("Enter")
        tmux.shows("tool bash $ ls -la")
        until(lambda path=seen["path"]: not Path(path).parent.exists(), "its folder is gone")
    tmux.press("R")
    tmux.shows("request of rec_")
    told.unlink()
    tmux.press("e")
    until(told.exists, "the program's note")
    assert json.loads(until(told.read_text, "its words"))["text"].startswith('{"model"')
    tmux.press("Enter")
    tmux.shows("request of rec_")
