"""Feedback typed into an agent: answered by the daemon in its dialect, durable, no turn, and no model is asked."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPResponse
from typing import Any

import pytest

from daemon.core.paths import Home
from daemon.core.records import Dialect
from daemon.server.inband import speaks_of_reef
from daemon.wire.base import dialect as codec_of
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Provider, Turn, running_provider

PATHS = {Dialect.CHAT: "/v1/chat/completions", Dialect.MESSAGES: "/v1/messages", Dialect.RESPONSES: "/v1/responses"}
EVERY = pytest.mark.parametrize("dialect", list(PATHS), ids=str)
STREAM = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
PLAIN = "Four."


TURNS = [Turn(PLAIN)]


@pytest.fixture(scope="module")
def daemon(module_home: Home, one_provider: Provider) -> Iterator[RunningDaemon]:
    config = one_provider.config(dialects=["chat", "messages", "responses"])
    with running_daemon(module_home, config) as running:
        yield running


@dataclass
class Talk:
    """An agent's conversation in a scenario of its own."""

    daemon: RunningDaemon
    scenario: str
    dialect: Dialect = Dialect.CHAT
    stream: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    said: list[dict[str, Any]] = field(default_factory=list)
    receipt: str = ""
    recording: str | None = None

    def ask(self, content: Any, **fields: Any) -> str:
        """The person says this; what comes back. Both are part of the conversation from then on."""
        messages = [*self.said, {"role": "user", "content": content}]
        response = self.send(messages, **fields)
        raw = response.read()
        assert response.status == 200, raw
        self.receipt = str(response.getheader("x-reef-agent-record-id"))
        self.recording = response.getheader("x-reef-recording")
        found = codec_of(self.dialect).transcript(b"", raw, stream=self.stream, redact=lambda data: (data, 0))
        assert found.answer is not None, raw
        self.said = [*messages, {"role": "assistant", "content": found.answer.text}]
        return found.answer.text

    def send(self, messages: list[dict[str, Any]], **fields: Any) -> HTTPResponse:
        name = "input" if self.dialect is Dialect.RESPONSES else "messages"
        body = {"model": "scripted", "max_tokens": 50, name: messages, "stream": self.stream, **fields}
        return self.daemon.open(PATHS[self.dialect], body, headers={"x-reef-scenario": self.scenario, **self.headers})

    def reports(self, receipt: str) -> list[tuple[float | None, str | None]]:
        return [(one["score"], one["feedback"]) for one in self.daemon.get(f"/reef/records/{receipt}")["reports"]]

    def session(self) -> dict[str, Any]:
        (found,) = self.daemon.get(f"/reef/sessions?scenario={self.scenario}")["items"]
        return dict(found)


@EVERY
@STREAM
def test_a_word_to_reef_is_a_report_on_the_answer_above_it(
    daemon: RunningDaemon, provider: Provider, dialect: Dialect, stream: bool
) -> None:
    talk = Talk(daemon, f"words-{dialect}-{stream}", dialect, stream)
    assert talk.ask("What is two and two?") == PLAIN
    first, asked = talk.receipt, len(provider.requests)
    assert talk.ask("reef-good just the number") == f"Reef: recorded good on {first}"
    assert (talk.recording, talk.receipt) == ("feedback", first), (
        "an exchange without a record names the one it is about"
    )
    assert talk.ask("reef-note say it in words") == f"Reef: recorded note on {first}"
    assert len(provider.requests) == asked, "a model was asked"
    assert talk.reports(first) == [(1.0, "just the number"), (None, "say it in words")]
    assert talk.ask("And three and three?") == PLAIN
    third = daemon.get(f"/reef/records/{talk.receipt}")
    assert (third["kind"], third["edge"], third["parent"]) == ("main", "next", first)
    assert talk.ask("reef-bad") == f"Reef: recorded bad on {third['receipt']}"
    session = talk.session()
    assert (session["turns"], session["records"], session["title"]) == (2, 2, "What is two and two?")
    assert (session["score"], session["reports"]) == (0.0, 3)


@EVERY
def test_what_is_said_to_reef_is_told_in_the_answers_own_words_where_it_cannot_be_kept(
    daemon: RunningDaemon, provider: Provider, dialect: Dialect
) -> None:
    talk, asked = Talk(daemon, f"nothing-{dialect}", dialect), len(provider.requests)
    assert talk.ask("reef-good").startswith("Reef: not recorded: this conversation has no recorded answer yet")
    talk.ask("Hello?")
    assert talk.ask("reef-note").startswith("Reef: not recorded: a note has words")
    assert len(provider.requests) == asked + 1
    assert talk.session()["title"] == "Hello?"
    assert talk.session()["reports"] == 0


def test_the_same_request_again_is_the_same_report_unless_that_was_taken_back(daemon: RunningDaemon) -> None:
    talk = Talk(daemon, "again")
    talk.ask("Well?")
    first, before = talk.receipt, talk.said
    for _ in range(2):
        talk.said = before
        talk.ask("reef-good")
    assert talk.reports(first) == [(1.0, None)]
    daemon.control("POST", "/reef/undo", {"record": first})
    talk.said = before
    talk.ask("reef-good")
    assert [one["undone_ns"] is None for one in daemon.get(f"/reef/records/{first}")["reports"]] == [False, True]


def test_feedback_is_about_the_answer_above_it_where_a_person_went_back(daemon: RunningDaemon) -> None:
    talk = Talk(daemon, "back")
    talk.ask("One?")
    first, early = talk.receipt, talk.said
    talk.ask("Two?")
    talk.said = early
    assert talk.ask("reef-bad").endswith(first)


@EVERY
def test_only_a_persons_newest_words_are_taken(daemon: RunningDaemon, provider: Provider, dialect: Dialect) -> None:
    talk = Talk(daemon, f"others-{dialect}", dialect)
    for words in ("Is reef-good a word?", "reef-goods", "reef-good.py fails", "Reef reef-good", "/reef good"):
        assert talk.ask(words) == PLAIN, words
    history = [*talk.said, {"role": "user", "content": "reef-good"}, {"role": "assistant", "content": "reef-bad"}]
    talk.said = history
    assert talk.ask("And now?") == PLAIN
    assert talk.session()["reports"] == 0


def result(dialect: Dialect, text: str) -> list[dict[str, Any]]:
    """A tool's call and what it gave back."""
    arguments = "{}"
    if dialect is Dialect.CHAT:
        call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": arguments}}
        return [{"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": text}]  # fmt: skip
    if dialect is Dialect.MESSAGES:
        use = {"type": "tool_use", "id": "c", "name": "bash", "input": {}}
        back = {"type": "tool_result", "tool_use_id": "c", "content": text}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [back]}]
    return [{"type": "function_call", "call_id": "c", "name": "bash", "arguments": arguments},
            {"type": "function_call_output", "call_id": "c", "output": text}]  # fmt: skip


@EVERY
def test_a_tools_result_says_nothing_to_reef(daemon: RunningDaemon, provider: Provider, dialect: Dialect) -> None:
    talk, asked = Talk(daemon, f"tool-{dialect}", dialect), len(provider.requests)
    talk.ask("Look.")
    assert talk.send([*talk.said, *result(dialect, "reef-bad and worse")]).read()
    assert len(provider.requests) == asked + 2
    assert talk.session()["reports"] == 0


def test_a_subagents_errand_and_a_title_say_nothing_to_reef(daemon: RunningDaemon, provider: Provider) -> None:
    talk = Talk(daemon, "errands", headers={"x-claude-code-session-id": "s-errands"}, dialect=Dialect.MESSAGES)
    tools = [{"name": "bash", "input_schema": {"type": "object"}}]
    talk.ask("Look.", tools=tools)
    receipt, before, asked = talk.receipt, talk.said, len(provider.requests)
    talk.headers["x-claude-code-agent-id"] = "a1"
    assert talk.ask("reef-good done", tools=tools) == PLAIN
    del talk.headers["x-claude-code-agent-id"]
    talk.said = []
    title = [{"role": "user", "content": "Generate a title for this conversation:\n"},
             {"role": "user", "content": '"reef-good done"'}]  # fmt: skip
    assert talk.send(title).status == 200
    assert len(provider.requests) == asked + 2
    assert talk.ask("reef-good done", tools=tools).startswith("Reef: not recorded"), "an errand has no answer above it"
    talk.said = before
    assert talk.ask("reef-good done", tools=tools) == f"Reef: recorded good on {receipt}"
    assert len(provider.requests) == asked + 2


def test_a_conversation_that_its_vendor_keeps_goes_on_from_the_answer_before(daemon: RunningDaemon) -> None:
    talk = Talk(daemon, "kept", Dialect.RESPONSES)
    talk.ask("Hello?")
    previous = json.loads(daemon.control("GET", f"/reef/records/{talk.receipt}/response")[1])["id"]
    talk.said = []
    response = talk.send([{"role": "user", "content": "reef-good"}], previous_response_id=previous)
    told = response.read().decode()
    assert f"recorded good on {talk.receipt}" in told
    assert f'"id":"{previous}"' in told


def test_while_recording_is_paused_it_says_which_answer_it_is_about(daemon: RunningDaemon) -> None:
    talk = Talk(daemon, "paused")
    talk.ask("One?")
    first = talk.receipt
    daemon.control("POST", "/reef/pause", {})
    try:
        talk.ask("Two?")
        assert talk.ask("reef-good") == f"Reef: recorded good on {first} (a later answer was not recorded: paused)"
    finally:
        daemon.control("POST", "/reef/resume", {})
    assert talk.reports(first) == [(1.0, None)]


def test_what_a_report_may_not_hold_is_told(daemon: RunningDaemon) -> None:
    talk = Talk(daemon, "long")
    talk.ask("One?")
    assert talk.ask(f"reef-note {'x' * 100_001}").startswith("Reef: not recorded: feedback has 100001 characters")


def test_a_report_is_on_disk_when_its_answer_comes(daemon: RunningDaemon, tmp_path: Any) -> None:
    home = Home(tmp_path / "home")
    with running_provider([Turn(PLAIN)]) as provider:
        with running_daemon(home, provider.config()) as other:
            talk = Talk(other, "durable")
            talk.ask("One?")
            first = talk.receipt
            talk.ask("reef-bad never again")
            other.kill()
        with running_daemon(home, provider.config()) as other:
            talk.daemon = other
            assert talk.reports(first) == [(0.0, "never again")]


def test_an_answer_to_feedback_has_an_id_of_its_own(daemon: RunningDaemon) -> None:
    """Claude Code takes two messages with one id for one."""
    talk = Talk(daemon, "ids", Dialect.MESSAGES)
    talk.ask("One?")
    before = talk.said
    ids = []
    for _ in range(2):
        talk.said = before
        ids.append(json.loads(talk.send([*before, {"role": "user", "content": "reef-good"}]).read())["id"])
    assert len({*ids, f"msg_{talk.receipt.removeprefix('rec_')}"}) == 3


def test_what_only_its_vendor_reads_is_no_obstacle(daemon: RunningDaemon) -> None:
    talk = Talk(daemon, "odd", Dialect.RESPONSES, stream=True)
    talk.ask("One?")
    assert talk.ask("reef-good", tools=[{"type": "made_up", "x": 1}], tool_choice={"type": "made_up"}).startswith(
        "Reef: recorded good"
    )


def test_most_requests_are_not_looked_at() -> None:
    assert not speaks_of_reef(b'{"messages":[{"role":"user","content":"the reef is bright, reef-life is good"}]}')
    assert speaks_of_reef(b'{"messages":[{"role":"user","content":"reef-note x"}]}')
