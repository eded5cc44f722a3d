"""A log's files: found by name, read as they grow, sifted."""

import os
from pathlib import Path

import pytest

from daemon.core.errors import UsageError
from daemon.core.paths import Home
from reef_cli.logfile import Sieve, Tail, leveled, names, path_of

_AT = "2026-01-31T12:00:0"


def test_more_is_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    tail = Tail(path)
    assert list(tail.lines()) == []
    assert tail.more() == []
    path.write_text("one\ntw")
    assert tail.more() == ["one\n"]
    with path.open("a") as file:
        file.write("o\n")
    assert tail.more() == ["two\n"]
    tail.close()


def test_a_file_that_was_cut_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("a long line\n")
    tail = Tail(path)
    assert list(tail.lines()) == ["a long line\n"]
    path.write_text("cut\n")
    assert tail.more() == ["cut\n"]
    tail.close()


def test_levels_and_words_keep_a_traceback_with_its_line() -> None:
    lines = [
        f"{_AT}1.000Z INFO reef: fine",
        f"{_AT}2.000Z ERROR reef: broke",
        "OSError: cut",
        f"{_AT}3.000Z CRITICAL x: y",
    ]

    def kept(sieve: Sieve) -> list[int]:
        return [n for n, line in enumerate(lines) if sieve.lets(line)]

    assert kept(Sieve()) == [0, 1, 2, 3]
    assert kept(Sieve("warning")) == [1, 2, 3]
    assert kept(Sieve(None, "BROKE")) == [1, 2]
    assert kept(Sieve(None, "oserror")) == [2]
    assert kept(Sieve("error", "fine")) == []
    assert kept(Sieve(start=f"{_AT}3")) == [3]


def test_a_query_may_name_a_level() -> None:
    assert leveled("no level:error tasks") == ("error", "no tasks")
    assert leveled("") == (None, "")
    with pytest.raises(UsageError, match="level:loud"):
        leveled("level:loud")


def test_the_newest_jobs_logs_are_named(reef_home: Home) -> None:
    reef_home.prepare()
    assert names(reef_home, 2) == ["daemon"]
    (reef_home.logs / "engine.log").touch()
    for n in range(3):
        (folder := reef_home.jobs / f"job_{n}").mkdir()
        (folder / "log").touch()
        os.utime(folder / "log", (n, n))
    assert names(reef_home, 2) == ["daemon", "engine", "job_2", "job_1"]
    assert path_of(reef_home, "job_2") == reef_home.jobs / "job_2" / "log"
    with pytest.raises(UsageError, match=r"\.\./tokens"):
        path_of(reef_home, "../tokens")
