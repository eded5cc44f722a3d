"""What does and what does not make a message another message."""

import json
from typing import Any

import pytest

from daemon.core.records import Dialect, Message, Text, Thinking, ToolResult, ToolUse
from daemon.wire import canonical
from daemon.wire.base import dialect

CHAT, MESSAGES = Dialect.CHAT, Dialect.MESSAGES
CACHE = {"cache_control": {"type": "ephemeral"}}


def key(name: Dialect, message: dict[str, Any]) -> bytes:
    return canonical.key(dialect(name).message(json.dumps(message).encode()))


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def call(arguments: str, **more: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": arguments}, **more}


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        pytest.param(
            MESSAGES,
            {"role": "user", "content": [text("hi", **CACHE)]},
            {"role": "user", "content": "hi"},
            id="a one-text list with a cache mark, and the string",
        ),
        pytest.param(
            CHAT,
            {"role": "user", "content": [text("hi")]},
            {"role": "user", "content": "hi"},
            id="the same in chat",
        ),
        pytest.param(
            MESSAGES,
            {"role": "system", "content": [text("s", **CACHE)], "output_config": {"effort": "low"}},
            {"role": "system", "content": "s"},
            id="a setting on a system message",
        ),
        pytest.param(
            MESSAGES,
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "x"}, text("yes")]},
            {"role": "assistant", "content": "yes"},
            id="thinking dropped",
        ),
        pytest.param(
            MESSAGES,
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}, text("yes"), text("")]},
            {"role": "assistant", "content": [text("yes")]},
            id="redacted thinking and empty text dropped",
        ),
        pytest.param(
            CHAT,
            {"role": "assistant", "content": "I'll run a command. "},
            {"role": "assistant", "content": "I'll run a command."},
            id="the answer's text trimmed",
        ),
        pytest.param(
            CHAT,
            {"role": "assistant", "content": None, "tool_calls": [call('{"a": 1, "b": 2}')]},
            {"role": "assistant", "content": "", "tool_calls": [call('{"b":2,"a":1}', index=0)]},
            id="arguments written anew, an index kept, null or empty content",
        ),
        pytest.param(
            CHAT,
            {"role": "assistant", "tool_calls": [call("{}")]},
            {"role": "assistant", "content": None, "tool_calls": [call("")], "annotations": [], "audio": None},
            id="no arguments, absent content, fields of the vendor",
        ),
        pytest.param(
            CHAT,
            {"role": "assistant", "content": "a", "reasoning_content": "hm"},
            {"role": "assistant", "content": "a"},
            id="reasoning dropped",
        ),
        pytest.param(
            CHAT,
            {"role": "developer", "content": "s"},
            {"role": "system", "content": "s"},
            id="developer and system",
        ),
        pytest.param(
            MESSAGES,
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x", **CACHE}]},
            {
                "role": "user",
                "content": [
                    {"is_error": False, "content": [text("x")], "tool_use_id": "t", "type": "tool_result"},
                ],
            },
            id="a tool result's order, cache mark and false error",
        ),
        pytest.param(
            MESSAGES,
            {"role": "assistant", "content": [text("a"), text("b")]},
            {"role": "assistant", "content": [text("ab")]},
            id="texts in a row",
        ),
    ],
)
def test_the_same_message_sent_again_has_the_same_key(
    name: Dialect, one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert key(name, one) == key(name, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"role": "user", "content": "a"}, {"role": "user", "content": "b"}),
        ({"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}),
        ({"role": "user", "content": "a"}, {"role": "user", "content": "a "}),
        (
            {"role": "assistant", "tool_calls": [call('{"a":1}')]},
            {"role": "assistant", "tool_calls": [call('{"a":2}')]},
        ),
        (
            {"role": "assistant", "tool_calls": [call("{}")]},
            {"role": "assistant", "tool_calls": [call("{}", id="c2")]},
        ),
        (
            {"role": "tool", "tool_call_id": "a", "content": "x"},
            {"role": "tool", "tool_call_id": "b", "content": "x"},
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a/1"}}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a/2"}}]},
        ),
    ],
)
def test_another_message_has_another_key(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert key(CHAT, one) != key(CHAT, other)


def test_a_failed_tool_result_is_not_a_good_one() -> None:
    good, bad = (Message("tool", (ToolResult("t", "x", failed),)) for failed in (False, True))
    assert canonical.key(good) != canonical.key(bad)


def test_both_dialects_agree_on_what_was_said() -> None:
    blocks = [text("ok"), {"type": "tool_use", "id": "c1", "name": "bash", "input": {"a": 1}}]
    chat = {"role": "assistant", "content": "ok", "tool_calls": [call('{"a":1}')]}
    assert key(MESSAGES, {"role": "assistant", "content": blocks}) == key(CHAT, chat)


def test_a_key_is_stable_across_releases() -> None:
    # Stored sessions hang on it: a change here needs a migration.
    assert canonical.key(Message("user", (Text("hi"),))).hex() == "e046d9b2ab313dc80142c25d4d2117b2"


@pytest.mark.parametrize(
    ("system", "texts"),
    [
        ("rules", ["rules"]),
        ([text("x-anthropic-billing-header: cc_version=2.1.332.4e6;"), text("rules", **CACHE)], ["rules"]),
        (None, []),
        ("", []),
        ({"odd": 1}, []),
        ([3, {"type": "text"}, "loose"], ["loose"]),
    ],
)
def test_the_system_root_is_its_texts_without_the_billing_block(system: Any, texts: list[str]) -> None:
    assert canonical.system_texts(system) == texts


def test_a_readable_message_has_what_was_said_called_and_returned_but_no_thinking() -> None:
    message = Message(
        "assistant", (Thinking("hm"), Text("Look:"), ToolUse("c", "bash", '{"c": "ls"}'), ToolResult("c", "a.txt"))
    )
    assert canonical.readable(message) == 'Look:\nbash {"c": "ls"}\na.txt'
