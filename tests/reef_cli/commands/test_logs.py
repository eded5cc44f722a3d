"""`reef logs`, with no daemon anywhere."""

import os
import subprocess
import sys
import time

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from tests.fakes.daemon import REPOSITORY
from tests.reef_cli.conftest import Reef


def stamp(seconds_ago: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - seconds_ago))


@pytest.fixture
def log(reef_home: Home) -> Home:
    """Three files: two rotated ones, and the current."""
    reef_home.log.with_name("daemon.log.2").write_text(f"{stamp(9000)}.000Z INFO reef: oldest\n")
    reef_home.log.with_name("daemon.log.1").write_text(f"{stamp(5000)}.000Z INFO reef: older\n")
    reef_home.log.write_text(
        f"{stamp(1000)}.000Z ERROR reef: failed\nTraceback (most recent call last):\n"
        f"{stamp(10)}.000Z INFO reef: new \x1b[31mred\n"
    )
    return reef_home


def words(out: str) -> list[str]:
    return [line.split()[-1] for line in out.splitlines()]


def test_all_files_in_order(log: Home, reef: Reef) -> None:
    assert words(reef("logs").out) == ["oldest", "older", "failed", "last):", "\\x1b[31mred"]


def test_the_last_lines(log: Home, reef: Reef) -> None:
    assert words(reef("logs", "-n", "2").out) == ["last):", "\\x1b[31mred"]
    assert reef("logs", "-n", "0").out == ""


@pytest.mark.parametrize(
    ("since", "found"),
    [
        ("1m", ["\\x1b[31mred"]),
        ("30m", ["failed", "last):", "\\x1b[31mred"]),
        ("2h", ["older", "failed", "last):", "\\x1b[31mred"]),
    ],
)
def test_since_a_while_ago_keeps_tracebacks_with_their_line(
    log: Home, reef: Reef, since: str, found: list[str]
) -> None:
    assert words(reef("logs", "--since", since).out) == found


def test_since_a_moment(log: Home, reef: Reef) -> None:
    assert words(reef("logs", "--since", stamp(100)[:16]).out) == ["\\x1b[31mred"]
    assert reef("logs", "--since", "2099-01-01").out == ""


def test_since_nonsense_is_a_usage_error(log: Home, reef: Reef) -> None:
    result = reef("logs", "--since", "yesterday", "--json")
    assert result.code == ExitCode.USAGE
    assert "yesterday" in result.error()["message"]


def test_json_is_a_line_each(log: Home, reef: Reef) -> None:
    assert reef("logs", "-n", "1", "--json").json()["line"].endswith("new \x1b[31mred")


def test_no_log_yet(reef: Reef) -> None:
    result = reef("logs")
    assert result.code == ExitCode.NOT_FOUND
    assert "reef start" in result.err


def test_follow_goes_on_across_a_rotation(log: Home) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "reef_cli.main", "logs", "-n", "1", "-f"],
        cwd=REPOSITORY,
        env={**os.environ, "REEF_HOME": str(log.root)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("red\n")
        with log.log.open("a") as file:
            file.write("half ")
            file.flush()
            file.write("whole\n")
        assert process.stdout.readline() == "half whole\n"
        log.log.rename(log.log.with_name("daemon.log.1"))
        log.log.write_text("after rotation\n")
        assert process.stdout.readline() == "after rotation\n"
        process.terminate()


def test_words_and_a_level(log: Home, reef: Reef) -> None:
    assert words(reef("logs", "level:error").out) == ["failed", "last):"]
    assert words(reef("logs", "OLDER").out) == ["older"]
    assert reef("logs", "level:loud").code == ExitCode.USAGE


def test_another_log(log: Home, reef: Reef) -> None:
    assert reef("logs", "--of", "engine").code == ExitCode.NOT_FOUND
    (log.logs / "engine.log").write_text("llama: a warning\n")
    assert reef("logs", "--of", "engine").out == "llama: a warning\n"
    assert "../x" in reef("logs", "--of", "../x").err
