"""Real agents' conversations (tests/golden/agents): each request goes on from the one before and its answer."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from daemon.core.records import Dialect, Transcript
from daemon.wire.base import DialectCodec, dialect
from tests.daemon.wire.resent import stream_of, wire_bytes

GOLDEN = Path(__file__).parents[2] / "golden" / "agents"
AGENTS = sorted(path.stem for path in GOLDEN.glob("*.json"))


def requests_of(agent: str) -> tuple[DialectCodec, list[dict[str, Any]]]:
    captured = json.loads((GOLDEN / f"{agent}.json").read_text(encoding="utf-8"))
    name = Dialect.MESSAGES if captured[0]["path"].startswith("/v1/messages") else Dialect.CHAT
    return dialect(name), [one["body"] for one in captured]


def recorded(codec: DialectCodec, body: Any, response: bytes = b"") -> Transcript:
    return codec.transcript(wire_bytes(body), response, stream=True, redact=lambda raw: (raw, 0))


def test_the_agents_are_there() -> None:
    assert {"pi", "claude-code", "opencode", "hermes-agent", "qwen-code"} <= set(AGENTS)


@pytest.mark.parametrize("agent", AGENTS)
def test_each_request_goes_on_from_the_one_before_and_its_answer(agent: str) -> None:
    codec, bodies = requests_of(agent)
    for body, after in pairwise(bodies):
        sent_back = after["messages"][len(body["messages"])]
        assert sent_back["role"] == "assistant"
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
        assert len(found.messages) == len(body["messages"])
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
