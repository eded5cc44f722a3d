"""What an agent did in a home, a project, a daemon and a provider of its own, and everything that Reef tells of it.

The provider's answers are scripted; all else is as a person has it. A scenario is a function of a `Run`; `happened`
carries one out from nothing and leaves nothing but what it returns.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from daemon.core.paths import Home
from tests.e2e.agents import Agent, installed
from tests.e2e.terminal import Terminal
from tests.fakes import shapes
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon, until
from tests.fakes.provider import TASK, Call, Fault, Provider, Received, Turn, running_provider

KEY: Final = "sk-canary-9f8e7d6c5b4a39281706"
PROMPT: Final = "create hello.txt"
AGAIN: Final = "once more"
_SECONDS: Final = 180
#: A stream that ends before its first word, which Reef tells as 502.
EMPTY: Final = Fault(after=0)
#: A bad quarter of an hour: an answer comes after two failures, three times.
FAULTS = (
    *(2 * [Fault(status=429, headers={"retry-after": "1"})]),
    Fault(),
    Fault(status=500),
    EMPTY,
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
    def environment(self) -> dict[str, str]:
        return self.agent.environment(self.user, self.daemon.url, self.daemon.agent_token, KEY)

    @property
    def asked(self) -> list[Received]:
        """What reached the provider for an answer; some agents look around first."""
        return [one for one in self.provider.requests if one.method == "POST"]

    @property
    def finals(self) -> int:
        """Answers so far that end the task."""
        return sum(TASK[-1].text in one["preview"] for one in self.daemon.get("/reef/records?limit=200")["items"])

    @property
    def kinds(self) -> Counter[str]:
        return Counter(record["kind"] for record in self.records)

    @property
    def broken(self) -> list[dict[str, Any]]:
        return [record for record in self.records if record["end"] != "ok"]

    def signals(self, name: str) -> list[dict[str, Any]]:
        found = [signal for entry in self.trace["records"] for signal in entry["signals"]]
        return [one for one in found if one["name"] == name]

    def parts(self, kind: str, *, of: str = "main") -> int:
        """Tool calls or results in the conversation, each counted once."""
        entries = [entry for entry in self.trace["records"] if entry["record"]["kind"] == of]
        messages = [m for one in entries for m in (one["new_messages"] if kind == "tool_result" else [one["answer"]])]
        return sum(part["type"] == kind for message in messages for part in message["parts"])

    def start(self, prompt: str, *, again: bool = False) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.agent.argv(self.root, *(self.agent.again if again else self.agent.ask), prompt),
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def ask(self, prompt: str, *, again: bool = False) -> None:
        process = self.start(prompt, again=again)
        try:
            out, _ = process.communicate(timeout=_SECONDS)
        finally:
            _end(process)
        self.said.append((process.returncode, out))

    def look(self, wanted: Counter[str]) -> None:
        """Take everything down that the tests ask about, before the daemon ends, as soon as the signals are there."""
        self.sessions = self.daemon.get("/reef/sessions")["items"]
        self.records = self.daemon.get("/reef/records?limit=200")["items"]
        assert self.sessions, self.said
        self._read()
        with suppress(AssertionError):  # signals come after the records; a test says what is missing
            until(lambda: self._read() == wanted, "every signal is there", 10)
        environment = {**os.environ, "REEF_HOME": str(self.daemon.home.root), "PYTHONPATH": str(REPOSITORY)}
        show = [sys.executable, "-m", "reef_cli.main", "traces", "show", self.sessions[-1]["id"]]
        self.shown = subprocess.run(show, env=environment, capture_output=True, text=True, check=True).stdout
        sides = [f"/reef/records/{one['receipt']}/{side}" for one in self.records for side in ("request", "response")]
        self.kept = [self.daemon.control("GET", side)[1] for side in sides]
        self.kept += [file.read_bytes() for file in self.daemon.home.root.rglob("*") if file.is_file()]

    def _read(self) -> Counter[str]:
        self.trace = self.daemon.get(f"/reef/traces/{self.sessions[-1]['id']}")
        return Counter(signal["name"] for entry in self.trace["records"] for signal in entry["signals"])


def _end(process: "subprocess.Popen[str]") -> None:
    """And what it left running."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def run_of(
    agent: Agent, dialects: str = "chat, messages, responses", *, prepare: Callable[[Home], object] | None = None
) -> Iterator[Run]:
    """``dialects``: those that the provider is known to speak. ``prepare`` fills the home before the daemon starts."""
    root = installed(agent)
    home, user = (Path(tempfile.mkdtemp(prefix=f"reef-{name}", dir="/tmp")) for name in "hu")
    Home(home).prepare()
    try:
        if prepare:
            prepare(Home(home))
        (user / "project").mkdir()
        commit = "git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
        subprocess.run(commit, shell=True, cwd=user / "project", check=True)
        with running_provider(TASK) as provider:
            provider.reply = agent.script
            engine = f"base_url: '{provider.url}/v1', key: agent, dialects: [{dialects}]"
            config = f"server: {{port: 0}}\nengine: p\nengines: {{p: {{{engine}}}}}\n"
            with running_daemon(Home(home), config) as daemon:
                yield Run(agent, root, daemon, provider, user)
    finally:
        _end_all(user)
        for folder in (home, user):
            shutil.rmtree(folder, ignore_errors=True)


def _end_all(folder: Path) -> None:
    """Codex leaves a server of its own running, from a program that it put into its home."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cmdline").read_bytes().startswith(f"{folder}/".encode()):
                os.kill(int(process.name), signal.SIGKILL)


def task(run: Run) -> Counter[str]:
    run.ask(PROMPT)
    return Counter(tool=len(run.agent.statuses))


def faults(run: Run) -> Counter[str]:
    """Of the conversation only: what becomes of a title is nobody's concern."""
    if run.agent.calls:
        run.provider.faulty = lambda asked: bool(asked.get("tools"))
    turns = run.agent.turns == 3
    # The drop after it must meet a connection that was used before.
    sent = (Fault(status=502) if fault is EMPTY and not (turns and run.agent.streams) else fault for fault in FAULTS)
    run.provider.faults.extend(fault for fault in sent if turns or fault != Fault())
    run.ask(PROMPT)
    broken = sum(record["end"] != "ok" for record in run.daemon.get("/reef/records")["items"])
    return Counter(tool=len(run.agent.statuses), retried=broken - run.agent.resumes)


def left(run: Run) -> Counter[str]:
    """Ctrl-C while the first answer is coming, or while it is waited for."""
    if run.agent.streams:
        run.provider.pace = 1.0
    else:
        run.provider.faults.append(Fault(hang=True))
    process = run.start(PROMPT)
    try:
        until(lambda: any(one.json().get("tools") or not run.agent.calls for one in run.asked), "asked", 60)
        for _ in range(3):  # some ask whether that was meant
            os.killpg(process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
                break
        asked = len(run.asked)
        until(lambda: len(run.daemon.get("/reef/records")["items"]) == asked, "records of what nobody waited for", 30)
    finally:
        _end(process)
        process.communicate()
    return Counter(stopped=asked)


def continued(run: Run) -> Counter[str]:
    run.ask(PROMPT)
    run.ask(AGAIN, again=True)
    return Counter(tool=2 * len(run.agent.statuses), turn=1)


def typed(run: Run) -> Counter[str]:
    """Two prompts in a terminal, where agents do more beside the conversation than in one go."""
    _type(run, PROMPT, AGAIN)
    return Counter(tool=2 * len(run.agent.statuses), turn=1)


def compressed(run: Run) -> Counter[str]:
    """The same, with a summary in the place of what was said in between."""
    _type(run, PROMPT, "/compress", AGAIN)
    return Counter(tool=2 * len(run.agent.statuses), turn=1)


def _type(run: Run, *prompts: str) -> None:
    """In a terminal, each when the one before is answered."""
    for name, text in run.agent.seeds.items():
        (run.user / name).write_text(text.replace("$PROJECT", str(run.project)))
    terminal = Terminal(run.daemon.home.run / "tmux")
    command = run.agent.argv(run.root, *(run.agent.terminal or ()))
    terminal.start(command, run.project, run.environment | {"TERM": "xterm-256color"})
    finals = 0
    try:
        terminal.see(run.agent.listens)
        for prompt in prompts:
            asked = len(run.asked)
            terminal("send-keys", "-l", prompt)
            terminal.see(prompt)
            until(lambda asked=asked: _entered(terminal, run, asked), "the prompt is sent", 60)
            if not prompt.startswith("/"):
                finals += 1
                until(lambda count=finals: run.finals >= count, "the last answer", 60)
                if run.agent.guesses:
                    until(lambda: "[SUGGESTION MODE:" in str(run.asked[-1].json()["messages"][-1]), "a guess", 60)
            until(lambda: len(run.daemon.get("/reef/records?limit=200")["items"]) >= len(run.asked), "its record", 60)
    finally:
        terminal("kill-server")


def _entered(terminal: Terminal, run: Run, asked: int) -> bool:
    """Presses Enter, again where that only ended a paste."""
    terminal("send-keys", "Enter")
    with suppress(AssertionError):
        until(lambda: len(run.asked) > asked, "a request", 3)
    return len(run.asked) > asked


def spawned(run: Run) -> Counter[str]:
    """Claude Code gives the task to a sub-agent."""

    def reply(asked: Any) -> Turn:
        turn = shapes.Messages(asked, 0).answered()
        if "SUBTASK" in str(asked["messages"][0]):
            return TASK[min(turn, 2)]
        given = {"description": "hello", "prompt": "SUBTASK", "subagent_type": "general-purpose"}
        return (Turn(calls=(Call("Agent", given | {"run_in_background": False}),)), TASK[2])[min(turn, 1)]

    run.provider.reply = reply
    run.ask(PROMPT)
    return Counter(tool=1 + len(run.agent.statuses))


def translated(run: Run) -> Counter[str]:
    """The provider speaks another dialect than the agent."""
    return task(run)


def spoilt(run: Run) -> Counter[str]:
    """As `faults`, by a provider that speaks another dialect."""
    return faults(run)


SCENARIOS: Final[dict[str, Callable[[Run], Counter[str]]]] = {
    scenario.__name__: scenario
    for scenario in (faults, spoilt, typed, compressed, continued, spawned, translated, left, task)
}


def happened(agent: Agent, scenario: str, dialects: str = "chat, messages, responses") -> Run:
    with run_of(agent, dialects) as run:
        wanted = SCENARIOS[scenario](run)
        run.files = {path.name: path.read_text() for path in run.project.glob("*.txt")}
        run.look(wanted)
        return run
