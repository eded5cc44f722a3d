"""Real agents whose daemon does not start, is killed between two runs, or in the middle of an answer.

The person has a provider of their own. Who chose `bypass` gets its answer, and is told so; who chose `fail` never asks
it unknowingly, and is told what to do.
"""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from adapters import pointing
from daemon.core.discovery import read_state
from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from daemon.store.db import Store
from reef_cli.lifecycle import ensure_daemon, lives, stop_daemon
from tests.conftest import new_home
from tests.e2e.agents import AGENTS, installed, node
from tests.e2e.test_codex import CODEX
from tests.fakes import agents, chain
from tests.fakes.daemon import until
from tests.fakes.provider import Provider, Turn, running_provider

pytestmark = pytest.mark.slow

OWN, REEFS = "This is your own model.", "This is Reef's model."
_BROKEN = "server: {port: nonsense}\n"
_PI = json.loads(pointing.AGENTS["pi"].text)


class Asked(NamedTuple):
    """An agent with words before a prompt. ``mode``: that in which a run without the daemon is the person's own."""

    name: str
    words: tuple[str, ...]
    mode: str


ASKED = (
    Asked("pi", ("-p",), "isolated"),
    Asked("pi", ("-p",), "overlay"),
    Asked("claude-code", ("-p",), "overlay"),
    Asked("codex", ("exec", "--skip-git-repo-check"), "overlay"),
)
EVERY = pytest.mark.parametrize("one", ASKED, ids=lambda one: f"{one.name}-{one.mode}")


class Person:
    """Someone with an agent, settings and a provider of their own, and Reef around it."""

    def __init__(self, home: Home, user: Path, own: Provider, reefs: Provider) -> None:
        self.home, self.user, self.own, self.reefs = home, user, own, reefs
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.config = reefs.config().replace("port: 0", f"port: {port}")
        home.prepare()
        home.config.write_text(self.config)
        (user / ".pi" / "agent").mkdir(parents=True)
        settings = {"defaultProvider": "reef", "defaultModel": "default"}  # called so, but theirs
        (user / ".pi" / "agent" / "settings.json").write_text(json.dumps(settings))
        (user / ".pi" / "agent" / "models.json").write_text(pointing.AGENTS["pi"].filled(own.url))
        (user / ".codex").mkdir()
        (user / ".codex" / "config.toml").write_text(pointing.AGENTS["codex"].filled(own.url))
        (user / "project").mkdir()
        self.environment = {
            "HOME": str(user), "PATH": f"{node('new').parent}:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb",
            "ANTHROPIC_BASE_URL": own.url, "ANTHROPIC_AUTH_TOKEN": "k", "OPENAI_API_KEY": "k",
            **AGENTS["pi"].quiet, **AGENTS["claude-code"].quiet,
        }  # fmt: skip

    def wrapped(self, one: Asked, down: str) -> str:
        real = {**AGENTS, "codex": CODEX}[one.name]
        start = [str(node(real.node))] if real.node else []
        words = [*start, str(installed(real) / real.program)]
        return agents.wrap(self.home, one.name, words, mode=one.mode, on_daemon_down=down)

    def start(self, command: str, one: Asked) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [command, *one.words, "hello"], cwd=self.user / "project", env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def run(self, command: str, one: Asked) -> tuple[int, str, str]:
        started = self.start(command, one)
        try:
            out, err = started.communicate(timeout=180)
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
        return started.returncode, out, err

    def turns(self, provider: Provider) -> list[Any]:
        """Not what an agent asks beside its conversation, or to see whether somebody is there."""
        return [one for one in provider.requests if one.method == "POST" and "hello" in one.body.decode()]

    def kill_the_daemon(self) -> None:
        state = read_state(self.home)
        assert state is not None
        os.kill(state.pid, signal.SIGKILL)
        until(lambda: not lives(self.home), "its end")


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    with new_home() as home, running_provider([Turn(OWN)]) as own, running_provider([Turn(REEFS)]) as reefs:
        made = Person(home, tmp_path, own, reefs)
        yield made
        home.config.write_text(made.config)
        stop_daemon(home)


@EVERY
def test_bypass_asks_the_persons_own_provider_and_says_so(person: Person, one: Asked) -> None:
    command = person.wrapped(one, "bypass")
    code, out, err = person.run(command, one)
    assert (code, REEFS in out, person.own.requests) == (0, True, []), err
    stop_daemon(person.home)
    person.home.config.write_text(_BROKEN)
    asked = len(person.reefs.requests)
    code, out, err = person.run(command, one)
    assert (code, OWN in out) == (0, True), err
    assert "Reef: the daemon did not start: exit code 2" in err
    assert "runs without it: your own model, nothing is recorded" in err
    assert (len(person.turns(person.own)) > 0, len(person.reefs.requests)) == (True, asked)
    sent = [value for request in person.own.requests for _, value in request.headers]
    assert not any(person.home.agent_token.read_text() in value or "x-reef" in value for value in sent)


@EVERY
def test_fail_says_what_to_do_and_asks_nobody(person: Person, one: Asked) -> None:
    """Without a release of an earlier run it does not start; with one it does, on a model that does not answer."""
    command = person.wrapped(one, "fail")
    person.home.config.write_text(_BROKEN)
    code, out, err = person.run(command, one)
    assert (code, out) == (ExitCode.UNREACHABLE, "")
    assert "error: the daemon did not start: exit code 2\n  hint: reef doctor\n" in err
    person.home.config.write_text(person.config)
    assert person.run(command, one)[0] == 0
    stop_daemon(person.home)
    person.home.config.write_text(_BROKEN)
    started = person.start(command, one)
    assert started.stderr is not None
    said = ""
    while "release base will answer once the daemon runs" not in said:
        line = started.stderr.readline()
        assert line, said
        said += line
    assert "Reef: the daemon did not start: exit code 2\n  hint: reef doctor\n" in said
    person.home.config.write_text(person.config)
    ensure_daemon(person.home)  # what the hint leads to: the agent that waits gets its answer, or has given up
    out, err = started.communicate(timeout=180)
    assert (REEFS in out) == (started.returncode == 0), err
    assert person.own.requests == []


@EVERY
def test_a_daemon_that_was_killed_between_two_runs_is_there_again(person: Person, one: Asked) -> None:
    command = person.wrapped(one, "fail")
    chain.publish(person.home)
    for _ in range(2):
        code, out, err = person.run(command, one)
        assert (code, REEFS in out) == (0, True), err
        person.kill_the_daemon()
    ensure_daemon(person.home)
    stop_daemon(person.home)
    store = Store.open(person.home.database)
    try:
        rows, _ = store.records(limit=50, session=None, scenario=None, before=None, after=None)
        torn = store.verify()
    finally:
        store.close()
    assert len([row for row in rows if row.end == "ok" and REEFS in row.preview]) >= 2
    assert (torn, person.own.requests) == ([], [])


@EVERY
def test_a_daemon_that_is_killed_in_an_answer_and_comes_back_is_asked_again(person: Person, one: Asked) -> None:
    """By the agent itself; its session goes on."""
    command = person.wrapped(one, "fail")
    assert person.run(command, one)[0] == 0  # what an agent does once in its life is done
    person.reefs.turns = (Turn(f"{REEFS} {'It takes its time. ' * 30}"),)
    person.reefs.pace = 0.2
    before = len(person.turns(person.reefs))
    started = person.start(command, one)
    until(lambda: len(person.turns(person.reefs)) > before, "it asks")
    person.kill_the_daemon()
    person.reefs.pace = 0.0
    ensure_daemon(person.home)
    out, err = started.communicate(timeout=180)
    assert (started.returncode, REEFS in out) == (0, True), (out, err)
    assert person.own.requests == []
