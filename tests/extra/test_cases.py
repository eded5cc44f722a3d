"""Every captured exchange of real agents, where the captures are: ``../shared/cases/captures`` beside the repository.

Not needed for a release: tests/golden/agents holds small forms of the ones that matter.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.core.records import ChatRequest, Dialect, ToolResult, ToolUse, Transcript
from daemon.server.proxy import ROUTES
from daemon.wire.base import dialect
from tests.daemon.wire.resent import stream_of, wire_bytes
from tests.daemon.wire.test_agents import answer_in, items_of, messages_in

CAPTURES = Path(__file__).parents[3] / "shared" / "cases" / "captures"
AGENTS = sorted(folder.name for folder in CAPTURES.iterdir()) if CAPTURES.is_dir() else []

pytestmark = pytest.mark.skipif(not AGENTS, reason=f"no captures at {CAPTURES}")


def exchanges(agent: str) -> list[tuple[Dialect, dict[str, Any], bytes]]:
    found = []
    for file in sorted((CAPTURES / agent).glob("*.json")):
        capture = json.loads(file.read_text(encoding="utf-8"))
        name = ROUTES.get(capture["path"].partition("?")[0])
        if name is not None and isinstance(capture["body"], dict):
            found.append((name, capture["body"], (capture["response"].get("body") or "").encode()))
    return found


def recorded(name: Dialect, body: Any, response: bytes = b"") -> Transcript:
    return dialect(name).transcript(wire_bytes(body), response, stream=True, redact=lambda raw: (raw, 0))


@pytest.mark.parametrize("agent", AGENTS or ["none"])
def test_every_exchange_is_recorded_to_the_byte(agent: str) -> None:
    for name, body, response in exchanges(agent):
        found = recorded(name, body, response)
        raws = found.separator.join(message.raw for message in found.messages)
        assert found.head + raws + found.tail == wire_bytes(body)
        assert found.response == response
        assert found.tools == len(body.get("tools") or [])
        assert not any(message.role not in ("system", "user", "assistant", "tool") for message in found.messages)
        assert "could not" not in str(found.note)


@pytest.mark.parametrize("agent", AGENTS or ["none"])
def test_every_request_is_understood_by_an_engine_of_ours(agent: str) -> None:
    for name, body, _ in exchanges(agent):
        request = dialect(name).parse(wire_bytes(body))
        assert len(request.messages) >= len(messages_in(items_of(body)))


@pytest.mark.parametrize("agent", AGENTS or ["none"])
def test_every_request_can_be_asked_in_every_other_dialect(agent: str) -> None:
    for name, body, _ in exchanges(agent):
        request = dialect(name).parse(wire_bytes(body))
        for other in (Dialect.CHAT, Dialect.MESSAGES, Dialect.RESPONSES):
            again = dialect(other).parse(dialect(other).write(request))
            assert [tool.schema for tool in again.tools] == [tool.schema for tool in request.tools]
            assert calls_in(again) == calls_in(request)


def calls_in(request: ChatRequest) -> list[tuple[str, bool]]:
    """Calls and results, in order."""
    parts = [part for message in request.messages for part in message.parts]
    return [(part.id, isinstance(part, ToolUse)) for part in parts if isinstance(part, ToolUse | ToolResult)]


@pytest.mark.parametrize("agent", AGENTS or ["none"])
def test_a_request_that_goes_on_from_an_earlier_one_passes_through_its_answer(agent: str) -> None:
    earlier: list[tuple[Dialect, dict[str, Any], list[bytes]]] = []
    for name, body, _ in exchanges(agent):
        keys = [message.key for message in recorded(name, body).messages]
        for other, before, chain in earlier:
            if other is not name or len(keys) <= len(chain) or keys[: len(chain)] != chain:
                continue
            if recorded(name, body).messages[len(chain)].role == "assistant":
                sent_back = answer_in(body, before)
                answer = recorded(name, before, stream_of(sent_back)).answer
                assert answer is not None
                assert answer.key == keys[len(chain)]
        earlier.append((name, body, keys))
