"""Tasks measured on what serves: told one by one, off the record, whatever the engine does."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.provider import Fault, Provider, Turn, running_provider

TASKS = [
    {"prompt": "What is rain?", "check": {"form": "one_sentence"}},
    {"prompt": "What is snow?", "check": {"expression": "crystals"}, "set": "regression"},
    {"prompt": "What is hail?", "check": {"form": "one_sentence"}, "set": "search"},
]


def answer(asked: dict[str, Any]) -> Turn:
    rain = "rain" in asked["messages"][-1]["content"]
    return Turn("Water that falls." if rain else "Frozen water. It falls slowly.")


@contextmanager
def serving(home: Home) -> Iterator[tuple[RunningDaemon, Provider]]:
    """A daemon with the tasks, and a provider that knows rain."""
    with running_provider() as provider:
        provider.reply = answer
        config = provider.config(key="env:REEF_TEST_KEY")
        with running_daemon(home, config, environment={"REEF_TEST_KEY": "k"}) as daemon:
            assert daemon.control("POST", "/reef/tasks", {"tasks": TASKS})[0] == 200
            yield daemon, provider


@pytest.fixture
def served(reef_home: Home) -> Iterator[tuple[RunningDaemon, Provider]]:
    with serving(reef_home) as both:
        yield both


def measured(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    status, raw = daemon.control("POST", "/reef/tasks/run", {})
    assert status == 200
    return {line["prompt"]: line for line in map(json.loads, raw.splitlines())}


def test_each_task_that_judges_is_answered_and_checked(served: tuple[RunningDaemon, Provider]) -> None:
    daemon, _ = served
    lines = measured(daemon)
    assert set(lines) == {"What is rain?", "What is snow?"}
    assert (lines["What is rain?"]["passed"], lines["What is rain?"]["set"]) == (True, "gate")
    assert (lines["What is snow?"]["passed"], lines["What is snow?"]["answer"]) == (
        False,
        "Frozen water. It falls slowly.",
    )
    assert daemon.get("/reef/records")["items"] == []


def test_an_engine_that_fails_is_told_for_its_task(served: tuple[RunningDaemon, Provider]) -> None:
    daemon, provider = served
    provider.faults += [Fault(status=500), Fault(status=500)]
    lines = measured(daemon)
    assert [line["passed"] for line in lines.values()] == [False, False]
    assert all(line["error"]["kind"] == "engine_error" for line in lines.values())


def test_a_scenario_without_tasks_says_how_to_add_some(served: tuple[RunningDaemon, Provider]) -> None:
    status, told = served[0].control("POST", "/reef/tasks/run", {"scenario": "work"})
    assert (status, told["error"]["hint"]) == (404, "reef tasks add --help")


def test_checks_that_take_long_hold_nobody_up(reef_home: Home) -> None:
    with TemporaryDirectory(prefix="go-", dir="/tmp") as made, serving(reef_home) as (daemon, _):
        Path(made).chmod(0o755)  # checks run as nobody
        go = Path(made) / "go"
        wait = f"sh -c 'until test -e {go}; do sleep 0.05; done'"
        slow = [{"prompt": f"What is {n}?", "check": {"command": wait}} for n in range(8)]
        assert daemon.control("POST", "/reef/tasks", {"tasks": slow})[0] == 200
        told: list[dict[str, dict[str, Any]]] = []
        runs = threading.Thread(target=lambda: told.append(measured(daemon)))
        runs.start()
        until(lambda: _running(f"until test -e {go}") >= 8, "all of them wait")
        daemon.get("/reef/status")
        assert told == []
        go.touch()
        runs.join()
    assert sum(line["passed"] for line in told[0].values()) == 9


def _running(words: str) -> int:
    """Shells that run these words."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += path.read_bytes().startswith(b"sh\0-c\0" + words.encode())
    return found
