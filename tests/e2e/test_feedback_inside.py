"""Feedback typed into real coding agents: a report on the right record, no model asked, and the work goes on."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.agents import AGENTS, Agent
from tests.e2e.runs import AGAIN, PROMPT, Run, run_of
from tests.e2e.terminal import Terminal
from tests.e2e.test_codex import CODEX
from tests.fakes import chain, shapes
from tests.fakes.daemon import REPOSITORY
from tests.fakes.provider import Turn, bash

pytestmark = pytest.mark.slow

WORDS = "reef-good works"
LASTING = {name: agent for name, agent in {**AGENTS, "codex": CODEX}.items() if agent.again}
TYPED = {name: agent for name, agent in LASTING.items() if agent.terminal is not None}


def last(run: Run) -> dict[str, Any]:
    """The last answer of the conversation."""
    rows = run.daemon.get("/reef/records?limit=200")["items"]
    return next(row for row in rows if row["kind"] == "main")


def reports(run: Run) -> list[tuple[str, float | None, str | None]]:
    rows = run.daemon.get("/reef/records?limit=200")["items"]
    found = [(row["receipt"], run.daemon.get(f"/reef/records/{row['receipt']}")["reports"]) for row in rows]
    return [(receipt, one["score"], one["feedback"]) for receipt, told in found for one in told]


def turns(run: Run) -> int:
    """Requests that reached a model, beside what agents ask for themselves."""
    return sum(row["kind"] == "main" for row in run.daemon.get("/reef/records?limit=200")["items"])


def one_session(run: Run, agent: Agent) -> None:
    (session,) = run.daemon.get("/reef/sessions")["items"]
    assert (session["title"].strip('"'), session["turns"]) == (PROMPT, 2 * agent.turns)
    assert (session["score"], session["reports"]) == (1.0, 1)


@pytest.mark.parametrize("name", LASTING)
def test_said_when_the_conversation_is_gone_on_with(name: str) -> None:
    with run_of(LASTING[name]) as run:
        run.ask(PROMPT)
        rated, asked = last(run)["receipt"], turns(run)
        run.ask(WORDS, again=True)
        assert f"Reef: recorded good on {rated}" in run.said[-1][1], run.said[-1]
        assert run.said[-1][0] == 0
        assert turns(run) == asked
        assert reports(run) == [(rated, 1.0, "works")]
        run.ask(AGAIN, again=True)
        one_session(run, run.agent)


@pytest.mark.parametrize("name", TYPED)
def test_typed_in_a_terminal(name: str) -> None:
    agent = TYPED[name]
    with run_of(agent) as run, terminal_of(run) as terminal:
        terminal.enter(PROMPT, lambda: turns(run) == agent.turns)
        rated = last(run)["receipt"]
        terminal.enter(WORDS, lambda: reports(run))
        terminal.see("Reef: recorded good on")
        assert reports(run) == [(rated, 1.0, "works")]
        assert turns(run) == agent.turns
        terminal.enter(AGAIN, lambda: turns(run) == 2 * agent.turns)
        one_session(run, agent)


def test_claude_codes_own_hooks_tell_of_a_release_and_take_feedback() -> None:
    agent = AGENTS["claude-code"]
    with run_of(agent, prepare=chain.publish) as run:
        settings = run.user / "hooks.json"
        settings.write_text(json.dumps({"hooks": hooks(run)}))
        with terminal_of(run, "--settings", str(settings), REEF_TOKEN=run.daemon.agent_token) as terminal:
            told = "Reef: release r1 · rule added: Use uv, not pip. · accepted 9\u20130 · this session runs base"
            terminal.see(f"SessionStart:startup says: {told}")
            terminal.enter(PROMPT, lambda: turns(run) == agent.turns)
            rated = last(run)["receipt"]
            asked = len(run.asked)
            terminal.enter("reef-bad too long", lambda: reports(run))
            terminal.see(f"Reef: recorded bad on {rated}")
            assert reports(run) == [(rated, 0.0, "too long")]
            assert len(run.asked) == asked


def test_claude_code_that_asks_somebody_else_says_so() -> None:
    """B101: https://github.com/anthropics/claude-code/issues/67619: settings win over the environment."""
    agent = AGENTS["claude-code"]
    with run_of(agent) as run:
        settings = run.user / "hooks.json"
        settings.write_text(json.dumps({"hooks": hooks(run), "env": {"ANTHROPIC_BASE_URL": run.provider.url}}))
        with terminal_of(run, "--settings", str(settings), REEF_TOKEN=run.daemon.agent_token) as terminal:
            terminal.enter(PROMPT, lambda: "nothing of this session reaches Reef" in terminal.screen())
        assert run.daemon.get("/reef/records")["items"] == []


def test_reef_good_in_a_shell_of_a_run_is_about_that_run() -> None:
    """Claude Code's own shell, in which a person may type as well (``! reef good``)."""
    agent = AGENTS["claude-code"]
    told = f"cd {REPOSITORY} && {sys.executable} -m reef_cli.main good"
    with run_of(agent) as run:
        run.provider.reply = lambda asked: (Turn("I ask Reef.", (bash(told),)), Turn("Said."))[
            min(shapes.Messages(asked, 0).answered(), 1)
        ]
        environment = {"REEF_RUN": "run_mine", "REEF_SCENARIO": "default", "REEF_HOME": str(run.daemon.home.root)}
        headers = {"ANTHROPIC_CUSTOM_HEADERS": "x-reef-tag-run: run_mine"}
        words = run.agent.argv(run.root, *agent.ask, "rate yourself")
        done = subprocess.run(
            words, cwd=run.project, env=run.environment | environment | headers, stdin=subprocess.DEVNULL, timeout=180
        )
        assert done.returncode == 0
        first = run.daemon.get("/reef/records?limit=200")["items"][-1]
        assert reports(run) == [(first["receipt"], 1.0, None)], "the answer that asked for the shell"


def hooks(run: Run) -> dict[str, Any]:
    """As a person may have them in their settings."""
    query = "release=base&scenario=default"
    token = '-H "Authorization: Bearer $REEF_TOKEN"'
    asks = f"curl -fsS --noproxy '*' {token} '{run.daemon.url}/reef/notice?form=hook&{query}'"
    http = {
        "type": "http",
        "url": f"{run.daemon.url}/reef/hook/claude-code?{query}",
        "headers": {"Authorization": "Bearer $REEF_TOKEN"},
        "allowedEnvVars": ["REEF_TOKEN"],
    }
    command = {"type": "command", "command": asks}
    events = {"SessionStart": command, "UserPromptSubmit": http, "Stop": http}
    return {event: [{"hooks": [one]}] for event, one in events.items()}


@contextmanager
def terminal_of(run: Run, *words: str, **environment: str) -> Iterator[Terminal]:
    """The agent in a terminal, ready for a prompt."""
    for file, text in run.agent.seeds.items():
        (run.user / file).write_text(text.replace("$PROJECT", str(run.project)))
    terminal = Terminal(run.daemon.home.run / "tmux")
    command = run.agent.argv(run.root, *words, *(run.agent.terminal or ()))
    terminal.start(command, run.project, run.environment | {"TERM": "xterm-256color"} | environment)
    try:
        terminal.see(run.agent.listens)
        yield terminal
    finally:
        terminal("kill-server")
