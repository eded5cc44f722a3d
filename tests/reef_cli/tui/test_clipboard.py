"""Copying through the terminal: what is sent, when it cannot arrive; a real tmux takes it."""

import base64
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from daemon.core.errors import ConfigError
from daemon.core.paths import Home
from reef_cli.tui.clipboard import obstacle, sequence, write


def test_it_is_osc_52() -> None:
    assert sequence("grüß", {}) == f"\x1b]52;c;{base64.b64encode('grüß'.encode()).decode()}\x07"


def test_inside_tmux_it_is_sent_wrapped_too() -> None:
    code = base64.b64encode(b"x").decode()
    assert sequence("x", {"TMUX": "/tmp/tmux,1,0"}) == (
        f"\x1b]52;c;{code}\x07" + f"\x1bPtmux;\x1b\x1b]52;c;{code}\x07\x1b\\"
    )


@pytest.mark.parametrize(
    ("environ", "options", "why"),
    [
        ({"TERM": "xterm-256color"}, {}, None),
        ({"TERM": "linux"}, {}, "this console has no clipboard"),
        ({"TERM_PROGRAM": "Apple_Terminal"}, {}, "Terminal.app takes none"),
        ({"STY": "1.tty"}, {}, "screen lets none through"),
        ({"TMUX": "x"}, {"set-clipboard": "external", "allow-passthrough": "off"}, "tmux set -g set-clipboard on"),
        ({"TMUX": "x"}, {"set-clipboard": "on", "allow-passthrough": "off"}, None),
        ({"TMUX": "x"}, {"set-clipboard": "external", "allow-passthrough": "on"}, None),
    ],
)
def test_what_cannot_arrive_is_known(environ: Mapping[str, str], options: dict[str, str], why: str | None) -> None:
    found = obstacle("text", environ, lambda name: options.get(name, ""))
    assert found == why or (why is not None and found is not None and why in found)


def test_more_than_a_terminal_takes_is_not_sent() -> None:
    assert obstacle("x" * 74_994, {}, str) is None
    assert obstacle("ü" * 40_000, {}, str) == "terminals take 74 kB at most"


def test_a_file_takes_it_instead(reef_home: Home) -> None:
    path = Path(write(reef_home, "a\x1b[31m"))
    assert path.read_bytes() == b"a\x1b[31m"
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigError, match="cannot write"):
        write(reef_home, "a")


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[list[str]]:
    if shutil.which("tmux") is None:
        pytest.skip("no tmux here")
    command = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]
    yield command
    subprocess.run([*command, "kill-server"], check=False, capture_output=True)


def test_tmux_takes_it(tmux: list[str], tmp_path: Path) -> None:
    """The real one, told to: its own buffer has the text."""
    program = (
        "import os; from pathlib import Path; from reef_cli.tui.clipboard import obstacle, sequence, tmux_option;"
        f"Path({str(tmp_path / 'said')!r}).write_text(str(obstacle('hello', os.environ, tmux_option)));"
        "print(sequence('hello', os.environ), flush=True); input()"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TMUX")}
    python = [sys.executable, "-c", program]
    subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24", "cat"], check=True, env=environment)
    subprocess.run([*tmux, "set-option", "-s", "set-clipboard", "on"], check=True)
    subprocess.run([*tmux, "respawn-pane", "-k", *python], check=True, env=environment)
    deadline = time.monotonic() + 60
    while "hello" not in (said := subprocess.run([*tmux, "show-buffer"], capture_output=True, text=True).stdout):
        assert time.monotonic() < deadline, said
        time.sleep(0.02)
    assert (tmp_path / "said").read_text() == "None"
