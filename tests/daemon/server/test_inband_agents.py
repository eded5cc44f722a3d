"""Whose words speak to Reef, in bodies that real agents send (tests/golden/agents) and in such as nobody sends."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.records import Dialect
from daemon.server.hooks import typed
from daemon.server.inband import speaks_of_reef
from daemon.store import inband
from daemon.store.inband import Said
from daemon.wire.base import DialectCodec, dialect
from tests.daemon.wire.resent import wire_bytes
from tests.daemon.wire.test_agents import AGENTS, items_of, requests_of

COVERS = ("daemon/server/inband.py",)
PROMPTS = ("Create hello.txt containing hello-reef", "now check it again")
WORDS = "reef-good works"
LISTS = {Dialect.CHAT: "messages", Dialect.MESSAGES: "messages", Dialect.RESPONSES: "input"}


def said(codec: DialectCodec, body: Any) -> Said | None:
    raw = wire_bytes(body)
    newest = codec.newest(raw) if speaks_of_reef(raw) else None
    return None if newest is None else inband.said(newest)


def newest(body: dict[str, Any]) -> dict[str, Any]:
    """The last item that is no system's."""
    found: dict[str, Any] = next(one for one in reversed(items_of(body)) if one.get("role") != "system")
    return found


def typing(body: dict[str, Any]) -> bool:
    return any(prompt in json.dumps(newest(body)) for prompt in PROMPTS)


def with_words(value: Any) -> Any:
    """The person's words instead of their prompt; what the agent put beside it, which is filler here, in its block."""
    if isinstance(value, dict):
        return {key: with_words(one) for key, one in value.items()}
    if isinstance(value, list):
        return [with_words(one) for one in value]
    if not isinstance(value, str) or value in ("user", "text", "input_text", "message", "ephemeral"):
        return value
    for prompt in PROMPTS:
        if prompt in value:
            return value.replace(prompt, WORDS)
    return f"<system-reminder>{value}</system-reminder>"


def all_words(value: Any) -> Any:
    """Everything that is text, but not what says whose it is."""
    if isinstance(value, dict):
        kept = ("role", "type", "tool_use_id", "tool_call_id", "call_id", "id", "name")
        return {key: one if key in kept else all_words(one) for key, one in value.items()}
    if isinstance(value, list):
        return [all_words(one) for one in value]
    return WORDS if isinstance(value, str) else value


@pytest.mark.parametrize("agent", AGENTS)
def test_what_a_person_types_into_an_agent_is_read_in_the_form_that_it_sends(agent: str) -> None:
    codec, bodies = requests_of(agent)
    typed_here = [body for body in bodies if typing(body)]
    assert typed_here or agent == "qwen-code", "its first prompt is filler here"
    for body in typed_here:
        assert said(codec, body) is None
        one = newest(body)
        one["content"] = with_words(one["content"])
        assert said(codec, body) == Said("good", "works")


@pytest.mark.parametrize("agent", AGENTS)
def test_what_a_tool_gave_back_says_nothing_however_it_is_sent(agent: str) -> None:
    codec, bodies = requests_of(agent)
    results = [body for body in bodies[1:] if not typing(body)]
    assert results
    for body in results:
        one = newest(body)
        changed = all_words(one)
        one.clear()
        one.update(changed)
        assert WORDS in json.dumps(one)
        assert said(codec, body) is None


_TEXTS = st.sampled_from([WORDS, '"reef-bad"', "reef-note x", "<system-reminder>reef-good</system-reminder>", "hi", ""])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | _TEXTS, inner, max_size=3),
    max_leaves=8,
)
_PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "input_text", "tool_result", "image", "function_call_output", "odd"])},
    optional={"text": _TEXTS | _JSON, "content": _TEXTS | _JSON, "tool_use_id": _TEXTS},
)
_ITEM = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "system", "developer", "tool", "function", "odd"]) | _JSON,
        "type": st.sampled_from(["message", "function_call_output", "reasoning", "function_call"]) | _JSON,
        "content": _TEXTS | st.lists(_PART, max_size=3) | _JSON,
        "output": _TEXTS | _JSON,
        "tool_call_id": _TEXTS,
    },
)


@given(st.sampled_from(list(LISTS)), st.lists(_ITEM, max_size=5) | _JSON, st.sampled_from(["", " ", "\n\t"]))
def test_nobody_but_a_user_speaks_to_reef_whatever_is_sent(name: Dialect, items: Any, blank: str) -> None:
    body = {LISTS[name]: items, "model": WORDS}
    raw = (blank + json.dumps(body, indent=1 if blank else None) + blank).encode()
    newest = dialect(name).newest(raw)
    found = None if newest is None else inband.said(newest)
    if found is not None and isinstance(items, list):
        users = [one for one in items if isinstance(one, dict) and one.get("role") == "user"]
        assert users or isinstance(items[-1], str) or "role" not in items[-1]
        assert f"reef-{found.word}" in json.dumps(items)


@given(st.binary(max_size=200), st.sampled_from(list(LISTS)))
def test_bytes_that_are_no_request_say_nothing(raw: bytes, name: Dialect) -> None:
    assert dialect(name).newest(raw + b"reef-good") is None


@given(
    st.text() | st.lists(st.sampled_from(["/", "reef", ":", "-", "good", "bad", "note", " ", "\n", "x"])).map("".join)
)
def test_a_prompt_of_a_hook_is_read_or_is_not(prompt: str) -> None:
    found = typed(prompt)
    if found is not None:
        assert prompt.lstrip()[:1] in ("/", "r")
        assert found.text in prompt
        assert f"{found.word}" in prompt.lstrip().split(None, 1)[0]
