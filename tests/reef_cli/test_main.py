"""The command's edge: dispatch, what it imports, exit codes, errors in both forms."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from reef_cli import main as main_module
from reef_cli.commands import COMMANDS
from reef_cli.main import main
from tests.fakes.disks import make_read_only, small_disk
from tests.reef_cli.conftest import Reef

ROOT = Path(__file__).parents[2]
HEAVY = ("typer", "rich", "asyncio", "yaml", "daemon.server", "http.client", "argparse", "subprocess", "ssl")


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_importing_the_command_imports_little() -> None:
    done = python(f"import sys, reef_cli.main; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("words", [["status"], ["stop"], ["--help"], ["--version"], ["good"]])
def test_hot_commands_run_without_the_heavy_modules(words: list[str], tmp_path: Path) -> None:
    # `good` would start a daemon: it gets a home that cannot be made, and fails before that.
    home = "/dev/null/reef" if words == ["good"] else str(tmp_path)
    code = f"""
import sys
from reef_cli.main import main
main({words!r})
print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)
"""
    done = python(code, REEF_HOME=home)
    assert done.stderr.splitlines()[-1] == "[]", done.stderr


def test_a_listing_imports_no_other_command() -> None:
    code = """
import sys
from reef_cli.main import main
main(["config", "path"])
print([m for m in sys.modules if m.startswith("reef_cli.commands.")], file=sys.stderr)
"""
    assert python(code).stderr.splitlines()[-1] == "['reef_cli.commands.config']"


def test_help_lists_every_command_and_imports_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert all(f"  {name}" in out and entry.summary in out for name, entry in COMMANDS.items())
    assert max(map(len, out.splitlines())) <= 100


def test_no_words_print_the_help_and_are_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ExitCode.USAGE
    assert "Usage: reef" in capsys.readouterr().out


def test_a_misspelt_command_names_the_nearest(reef: Reef) -> None:
    result = reef("staus", "--json")
    assert result.code == ExitCode.USAGE
    assert result.out == ""
    assert result.error() == {"kind": "usage", "message": "no command is called 'staus'", "hint": "reef status"}


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["traces", "lst"], "reef traces --help"),
        (["status", "--nope"], "reef status --help"),
        (["note"], "reef note --help"),
        (["env", "--shell", "csh"], "reef env --help"),
        (["logs", "-n", "many"], "reef logs --help"),
    ],
)
def test_words_that_no_command_takes_are_usage_errors(reef: Reef, words: list[str], hint: str) -> None:
    result = reef(*words)
    assert result.code == ExitCode.USAGE
    assert result.err.startswith("error: ")
    assert f"hint: {hint}" in result.err


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(words: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module, "_dispatch", interrupted)
    assert main(["status"]) == ExitCode.INTERRUPTED


def test_a_bug_is_told_shortly(monkeypatch: pytest.MonkeyPatch, reef: Reef) -> None:
    def broken(words: list[str]) -> int:
        raise RuntimeError("odd")

    monkeypatch.setattr(main_module, "_dispatch", broken)
    result = reef("status", "--json")
    assert result.code == ExitCode.FAILED
    assert result.error()["message"] == "unexpected RuntimeError: odd"


def test_a_reader_that_leaves_is_no_news(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "daemon.log"
    log.parent.mkdir()
    log.write_text("a line of the log\n" * 100_000)
    shell = f"{sys.executable} -m reef_cli.main logs -n 100000 | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shell}"],
        cwd=ROOT,
        env={**os.environ, "REEF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (141, "a line of the log\n", "")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("reef ")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A home on a file system that is read-only by now."""
    with small_disk(tmp_path / "disk", "8m") as place:
        home = Home(place / "home")
        home.prepare()
        home.lock.touch(0o600)
        make_read_only(place)
        yield home.root


def test_a_home_that_is_read_only_is_named(read_only: Path) -> None:
    for words in ("status", "start", "doctor"):
        code = f"import sys; from reef_cli.main import main; sys.exit(main(['{words}']))"
        done = python(code, REEF_HOME=str(read_only))
        said = done.stdout + done.stderr
        assert "Traceback" not in said
        assert "unexpected" not in said
        if words != "status":
            assert done.returncode != 0
            assert "Read-only file system" in said or "cannot be written" in said
