"""Real agents from one release to the next: as the person chose it, seen or unseen, and under their feet."""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from adapters.agent import ModeName
from adapters.plan import Upgrade
from adapters.session import Place
from daemon.core import harness
from daemon.core.paths import Home
from tests.e2e.terminal import Terminal
from tests.e2e.test_adapters import Case, installed
from tests.e2e.test_wrapped_agents import AGENTS, Told, listening
from tests.fakes import chain
from tests.fakes.daemon import REPOSITORY, running_daemon, until
from tests.fakes.provider import TASK

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not on this machine")]

PROMPT: Final = "create hello.txt"
#: Of the provider, as `installed` has it.
KEY: Final = {"REEF_TEST_KEY": "k"}
WRAPPED: Final = ("pi", "claude-code", "codex", "opencode")


def counted(case: Case) -> str:
    """The release that the last answer is counted for, whose rules were sent for it."""
    last: str = case.daemon.get("/reef/last")["receipt"]
    release: str = case.daemon.get(f"/reef/records/{last}")["release_id"]
    return release


def told_by_reef(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("Reef: ")]


def publish(home: Home, number: int, reason: str) -> str:
    """A rule and a skill that are named after it, in the place of the ones before."""
    skill = f"---\nname: greet-{number}\ndescription: How to greet.\n---\nSay hello.\n"
    tree: dict[str, str | None] = {"rules.md": f"Rule {number}.\n", f"skills/greet-{number}/SKILL.md": skill}
    if number > 1:
        tree[f"skills/greet-{number - 1}/SKILL.md"] = None
    release: str = chain.publish(home, f"job_{number}", tree, reason=reason).id
    return release


def headless(case: Case, told: Told) -> tuple[str, list[str]]:
    """What a run in nobody's sight was counted for, and what the wrapper said."""
    done = case.run(*told.task, PROMPT)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return counted(case), told_by_reef(done.stderr)


@contextmanager
def on_a_screen(case: Case, told: Told) -> Iterator[Terminal]:
    terminal = Terminal(case.daemon.home.run / "tmux")
    environment = {"HOME": str(case.user), "TERM": "xterm-256color", "PYTHONPATH": str(REPOSITORY)}
    terminal.start([str(case.command), *told.terminal], case.user / "project", environment)
    try:
        yield terminal
    finally:
        terminal("kill-server")


def ask(case: Case, terminal: Terminal, prompt: str) -> str:
    """All that was to be seen until the answer was there, which is counted by then."""
    asked = len(case.asked())
    terminal.enter(prompt, lambda: len(case.asked()) > asked)
    return terminal.see(TASK[-1].text)


def choose(home: Home, name: str, upgrade: Upgrade) -> None:
    chosen = Place(home.agents / name).install
    chosen.write_text(json.dumps({**json.loads(chosen.read_text()), "upgrade": upgrade}))


@pytest.mark.parametrize("name", WRAPPED)
def test_a_newer_release_is_taken_as_the_person_chose(reef_home: Home, tmp_path: Path, name: str) -> None:
    told = AGENTS[name]
    with installed(reef_home, tmp_path / "user", name, "isolated", upgrade="ask") as case:
        first = publish(reef_home, 1, "one rule")
        assert headless(case, told) == (first, [])
        second = publish(reef_home, 2, "another rule")
        why = "release r2 · another rule · accepted 9\u20130"
        keeps = f"Reef: {why} · this run keeps r1: reef harness update --adapter {name}"
        assert headless(case, told) == (first, [keeps])  # nobody can be asked
        with on_a_screen(case, told) as terminal:
            terminal.see("Use it from now on? [y/N]")
            assert why in terminal.screen()
            terminal.type("y")
            listening(terminal, told)
            ask(case, terminal, PROMPT)
            until(lambda: counted(case) == second, "the answer is counted for what the person took")

        choose(reef_home, name, "pinned")
        third = publish(reef_home, 3, "a third rule")
        why = "release r3 · a third rule · accepted 9\u20130"
        keeps = f"Reef: {why} · this run keeps r2: reef harness update --adapter {name}"
        assert headless(case, told) == (second, [keeps])
        with on_a_screen(case, told) as terminal:
            shown = listening(terminal, told)
            shown += ask(case, terminal, PROMPT)
            assert "release r3" in shown, shown
            until(lambda: counted(case) == second, "the answer is counted for what is pinned")

        choose(reef_home, name, "auto")
        assert headless(case, told) == (third, [f"Reef: {why}"])
        assert headless(case, told) == (third, [])


@pytest.mark.parametrize("mode", ["isolated", "overlay"])
@pytest.mark.parametrize("name", WRAPPED)
def test_runs_on_both_sides_of_a_release_are_each_whole(
    reef_home: Home, tmp_path: Path, name: str, mode: ModeName
) -> None:
    told = AGENTS[name if mode == "isolated" else f"{name}-overlay"]
    with installed(reef_home, tmp_path / "user", name, mode) as case, ThreadPoolExecutor(4) as pool:
        releases = [publish(reef_home, 1, "one rule")]
        headless(case, told)  # two first starts of OpenCode at once make the same tables, and one of them fails
        sessions = Place(reef_home.agents / name).sessions
        before = set(sessions.iterdir())
        runs = [pool.submit(case.run, *told.task, PROMPT) for _ in range(2)]
        until(lambda: set(sessions.iterdir()) - before, "one has begun", 60)
        releases.append(publish(reef_home, 2, "another rule"))
        runs += [pool.submit(case.run, *told.task, PROMPT) for _ in range(2)]
        for run in runs:
            assert run.result().returncode == 0, run.result().stderr

        seen = [json.dumps(body) for body in case.asked() if body.get("tools")]
        for body in seen:
            marks = [harness.mark(release) in body for release in releases]
            assert sum(marks) == 1
            assert [f"Rule {number}." in body for number in (1, 2)] == marks
            skills = [f"greet-{number}" in body for number in (1, 2)]
            assert skills == marks
        by_run: dict[str, set[str]] = {}
        for row in case.daemon.get("/reef/records?limit=200")["items"]:
            record = case.daemon.get(f"/reef/records/{row['receipt']}")
            by_run.setdefault(record["tags"]["run"], set()).add(record["release_id"])
        assert sorted(map(len, by_run.values())) == [1] * 5
        assert set.union(*by_run.values()) == set(releases)


@pytest.mark.parametrize("name", WRAPPED)
def test_a_session_outlives_the_daemon_and_stays_on_its_release(
    reef_home: Home, tmp_path: Path, free_port: int, name: str
) -> None:
    told = AGENTS[name]
    with installed(reef_home, tmp_path / "user", name, "isolated") as case:
        case.daemon.stop()
        config = reef_home.config.read_text().replace("port: 0", f"port: {free_port}")
        with running_daemon(reef_home, config, environment=KEY) as daemon:
            first = publish(reef_home, 1, "one rule")
            with on_a_screen(case._replace(daemon=daemon), told) as terminal:
                listening(terminal, told)
                ask(case, terminal, PROMPT)
                daemon.stop()
                second = publish(reef_home, 2, "another rule")
                with running_daemon(reef_home, config, environment=KEY) as again:
                    case = case._replace(daemon=again)
                    asked = len(case.asked())
                    terminal.enter("once more", lambda: len(case.asked()) > asked)
                    until(lambda: counted(case) == first, "the answer is counted for the rules that were sent")
                    assert ["Rule 1." in str(body) for body in case.asked() if body.get("tools")][-1]
                    assert headless(case, told)[0] == second
