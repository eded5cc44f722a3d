"""Real agents' conversations (tests/golden/agents): each request goes on from the one before and its answer."""

import json
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest

from daemon.core.records import Transcript
from daemon.server.proxy import ROUTES
from daemon.wire.base import DialectCodec, dialect
from daemon.wire.responses_items import is_answer
from tests.daemon.wire.resent import stream_of, wire_bytes

GOLDEN = Path(__file__).parents[2] / "golden" / "agents"
AGENTS = sorted(path.stem for path in GOLDEN.glob("*.json"))


def requests_of(agent: str) -> tuple[DialectCodec, list[dict[str, Any]]]:
    captured = json.loads((GOLDEN / f"{agent}.json").read_text(encoding="utf-8"))
    return dialect(ROUTES[captured[0]["path"].partition("?")[0]]), [one["body"] for one in captured]


def items_of(body: dict[str, Any]) -> list[Any]:
    """What each request repeats and adds to."""
    items: list[Any] = body["input"] if "input" in body else body["messages"]
    return items


def answer_in(after: dict[str, Any], before: dict[str, Any]) -> Any:
    """What the agent sent back of the answer to the request before: a message, or a row of items."""
    added = items_of(after)[len(items_of(before)) :]
    return list(takewhile(is_answer, added)) if "input" in after else added[0]


def recorded(codec: DialectCodec, body: Any, response: bytes = b"") -> Transcript:
    return codec.transcript(wire_bytes(body), response, stream=True, redact=lambda raw: (raw, 0))


def messages_in(items: list[Any]) -> list[Any]:
    """Items that a model made in a row are one."""
    return [item for i, item in enumerate(items) if not (i and is_answer(item) and is_answer(items[i - 1]))]


def test_the_agents_are_there() -> None:
    assert {"pi", "claude-code", "codex", "opencode", "hermes-agent", "qwen-code"} <= set(AGENTS)


@pytest.mark.parametrize("agent", AGENTS)
def test_each_request_goes_on_from_the_one_before_and_its_answer(agent: str) -> None:
    codec, bodies = requests_of(agent)
    for body, after in pairwise(bodies):
        sent_back = answer_in(after, body)
        before = recorded(codec, body, stream_of(sent_back))
        assert before.answer is not None
        chain = [*(message.key for message in before.messages), before.answer.key]
        keys = [message.key for message in recorded(codec, after).messages]
        assert keys[: len(chain)] == chain
        assert len(keys) > len(chain)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_conversation_has_one_root(agent: str) -> None:
    codec, bodies = requests_of(agent)
    assert len({recorded(codec, body).root for body in bodies}) == 1


@pytest.mark.parametrize("agent", AGENTS)
def test_requests_join_back_to_the_byte(agent: str) -> None:
    codec, bodies = requests_of(agent)
    for body in bodies:
        found = recorded(codec, body)
        raws = found.separator.join(message.raw for message in found.messages)
        assert found.head + raws + found.tail == wire_bytes(body)
        assert len(found.messages) == len(messages_in(items_of(body)))
        assert found.tools == len(body["tools"])
        assert found.note is None


@pytest.mark.parametrize("agent", AGENTS)
def test_requests_are_understood_by_an_engine_of_ours(agent: str) -> None:
    codec, bodies = requests_of(agent)
    for body in bodies:
        request = codec.parse(wire_bytes(body))
        assert request.model == body["model"]
        assert request.stream is True
        assert [tool.name for tool in request.tools]
        assert request.messages[0].role == "system"


def test_tool_results_are_told_from_what_a_person_typed() -> None:
    codec, bodies = requests_of("claude-code")
    roles = [message.role for message in recorded(codec, bodies[3]).messages]
    assert roles == ["user", "system", "assistant", "tool", "assistant", "tool", "assistant", "user"]
