"""Real coding agents through the real daemon: each finishes the scripted task, survives a bad provider, and is left.

The provider's answers are scripted; all else is as a person has it. Every run has a daemon, a home and a project of its
own, so several go on at once, as many as `AT_ONCE`; the tests look at what became of them.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.e2e.agents import AGENTS, Agent, installed
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon, until
from tests.fakes.provider import TASK, Fault, Provider, running_provider

pytestmark = pytest.mark.slow

KEY = "sk-canary-9f8e7d6c5b4a39281706"
PROMPT = "create hello.txt"
AT_ONCE = 3
SECONDS = 180
#: A bad quarter of an hour: an answer comes after two failures, three times.
FAULTS = (
    *(2 * [Fault(status=429, headers={"retry-after": "1"})]),
    Fault(),
    *(2 * [Fault(status=500)]),
    Fault(),
    Fault(drop=True),
    Fault(after=4),
)


@dataclass
class Run:
    """An agent in a new home, and what it left: its words and exit codes, and everything that Reef tells."""

    agent: Agent
    root: Path
    daemon: RunningDaemon
    provider: Provider
    user: Path
    files: dict[str, str] = field(default_factory=dict)
    said: list[tuple[int, str]] = field(default_factory=list)
    sessions: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    trace: dict[str, Any] = field(default_factory=dict)
    shown: str = ""
    kept: list[bytes] = field(default_factory=list)

    @property
    def project(self) -> Path:
        return self.user / "project"

    @property
    def kinds(self) -> Counter[str]:
        return Counter(record["kind"] for record in self.records)

    def start(self, prompt: str, *, again: bool = False) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.agent.argv(self.root, prompt, again=again),
            cwd=self.project,
            env=self.agent.environment(self.user, self.daemon.url, self.daemon.agent_token, KEY),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def ask(self, prompt: str, *, again: bool = False) -> None:
        process = self.start(prompt, again=again)
        try:
            out, _ = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
        self.said.append((process.returncode, out))

    def look(self) -> None:
        """Take everything down that the tests ask about, before the daemon ends."""
        self.sessions = self.daemon.get("/reef/sessions")["items"]
        self.records = self.daemon.get("/reef/records?limit=200")["items"]
        assert self.sessions, self.said
        self.trace = self.daemon.get(f"/reef/traces/{self.sessions[-1]['id']}")
        environment = {**os.environ, "REEF_HOME": str(self.daemon.home.root), "PYTHONPATH": str(REPOSITORY)}
        show = [sys.executable, "-m", "reef_cli.main", "traces", "show", self.sessions[-1]["id"]]
        self.shown = subprocess.run(show, env=environment, capture_output=True, text=True, check=True).stdout
        sides = [f"/reef/records/{one['receipt']}/{side}" for one in self.records for side in ("request", "response")]
        self.kept = [self.daemon.control("GET", side)[1] for side in sides]
        self.kept += [file.read_bytes() for file in self.daemon.home.root.rglob("*") if file.is_file()]


@contextmanager
def run_of(agent: Agent) -> Iterator[Run]:
    root = installed(agent)
    home, user = (Path(tempfile.mkdtemp(prefix=f"reef-{name}", dir="/tmp")) for name in "hu")
    Home(home).prepare()
    try:
        (user / "project").mkdir()
        commit = "git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
        subprocess.run(commit, shell=True, cwd=user / "project", check=True)
        with running_provider(TASK) as provider:
            provider.reply = agent.script
            one = f"base_url: '{provider.url}/v1', key: agent"
            config = f"server: {{port: 0}}\nengine: p\nengines: {{p: {{{one}}}, a: {{{one}, api: anthropic}}}}\n"
            with running_daemon(Home(home), config) as daemon:
                yield Run(agent, root, daemon, provider, user)
    finally:
        for folder in (home, user):
            shutil.rmtree(folder, ignore_errors=True)


def task(run: Run) -> None:
    run.ask(PROMPT)


def faults(run: Run) -> None:
    """Of the conversation only: what becomes of a title is nobody's concern."""
    if run.agent.calls:
        run.provider.faulty = lambda asked: bool(asked.get("tools"))
    run.provider.faults.extend(FAULTS if run.agent.turns == 3 else (fault for fault in FAULTS if fault != Fault()))
    run.ask(PROMPT)


def left(run: Run) -> None:
    """Ctrl-C while the first answer is coming, or while it is waited for."""
    if run.agent.streams:
        run.provider.pace = 1.0
    else:
        run.provider.faults.append(Fault(hang=True))
    process = run.start(PROMPT)
    try:
        until(lambda: run.provider.requests, "a request reaches the provider", 60)
        for _ in range(3):  # some ask whether that was meant
            os.killpg(process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
                break
        until(lambda: run.daemon.get("/reef/records")["items"], "a record of the answer that nobody waited for", 30)
    finally:
        process.kill()
        process.communicate()


def continued(run: Run) -> None:
    run.ask(PROMPT)
    run.ask("once more", again=True)


SCENARIOS: dict[str, Callable[[Run], None]] = {f.__name__: f for f in (task, faults, left, continued)}


def happened(agent: Agent, scenario: Callable[[Run], None]) -> Run:
    with run_of(agent) as run:
        scenario(run)
        run.files = {path.name: path.read_text() for path in run.project.glob("*.txt")}
        run.look()
        return run


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[tuple[str, str], "Future[Run]"]]:
    """Every run that the chosen tests ask for; begun at once, `AT_ONCE` at a time, the long ones first."""
    wanted = {
        (str(item.callspec.params["agent"]), scenario)
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module is request.module
        for scenario in SCENARIOS
        if scenario in item.name
    }
    with ThreadPoolExecutor(AT_ONCE) as pool:
        order = sorted(wanted, key=lambda one: ("faults", "continued", "left", "task").index(one[1]))
        yield {(name, one): pool.submit(happened, AGENTS[name], SCENARIOS[one]) for name, one in order}


def calls(run: Run, part: str) -> int:
    """Parts of that type in the conversation, each counted once."""
    messages = [
        message
        for entry in run.trace["records"]
        if entry["record"]["kind"] == "main"
        for message in (entry["new_messages"] if part == "tool_result" else [entry["answer"]])
    ]
    return sum(one["type"] == part for message in messages for one in message["parts"])


@pytest.mark.parametrize("agent", AGENTS)
def test_task_is_done_and_is_one_session(agent: str, runs: dict[tuple[str, str], "Future[Run]"]) -> None:
    run, told = runs[agent, "task"].result(), AGENTS[agent]
    assert run.said[0][0] == 0, run.said
    assert TASK[-1].text in run.said[0][1]
    assert run.files == {"hello.txt": "hello-reef\n"}
    (session,) = run.sessions
    assert (session["agent"], session["turns"], PROMPT in session["title"]) == (told.stored_as, told.turns, True)
    assert run.kinds == Counter(main=told.turns, side=told.sides)
    assert {record["end"] for record in run.records} == {"ok"}
    assert len({record["receipt"] for record in run.records}) == len(run.provider.requests)
    assert (calls(run, "tool_use"), calls(run, "tool_result")) == (told.calls, min(told.calls, 3))
    assert TASK[-1].text in run.shown
    assert not any(KEY.encode() in kept for kept in run.kept)
    assert all(KEY in str(one.headers) for one in run.provider.requests)


@pytest.mark.parametrize("agent", AGENTS)
def test_faults_are_survived_and_retries_count_once(agent: str, runs: dict[tuple[str, str], "Future[Run]"]) -> None:
    run, told = runs[agent, "faults"].result(), AGENTS[agent]
    assert run.said[0][0] == 0, run.said
    assert run.files == {"hello.txt": "hello-reef\n"}
    (session,) = run.sessions
    assert (session["turns"], run.provider.faults) == (told.turns, deque())
    broken = [record for record in run.records if record["end"] != "ok"]
    repeated = len(broken) - told.resumes
    assert run.kinds == Counter(main=told.turns + told.resumes, retry=repeated, side=told.sides)
    assert Counter(record["status"] for record in broken) == {429: 2, 500: 2} | ({200: 1} if told.streams else {})


@pytest.mark.parametrize("agent", AGENTS)
def test_left_in_the_middle_is_cancelled(agent: str, runs: dict[tuple[str, str], "Future[Run]"]) -> None:
    run = runs[agent, "left"].result()
    assert {record["end"] for record in run.records} == {"cancelled"}
    assert [session["turns"] for session in run.sessions] == [0]


@pytest.mark.parametrize("agent", [name for name, told in AGENTS.items() if told.again])
def test_continued_conversation_stays_one_session(agent: str, runs: dict[tuple[str, str], "Future[Run]"]) -> None:
    run, told = runs[agent, "continued"].result(), AGENTS[agent]
    assert [code for code, _ in run.said] == [0, 0], run.said
    (session,) = run.sessions
    assert session["turns"] == 2 * told.turns
    assert run.kinds["main"] == 2 * told.turns
