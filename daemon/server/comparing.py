"""What changed between two requests of a line, in words that a person and a program can read. Pure.

What breaks a prompt cache is told by name: the model, the tools, the system prompt, or a message in the middle, with
the first characters that differ.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from daemon.core.prefix import shared
from daemon.core.records import Dialect, Image, StoredMessage, Text, Thinking, ToolResult, ToolUse
from daemon.store.compare import Compared
from daemon.store.messages import Frame
from daemon.wire.base import dialect as codec_of

#: Fields of a request that stand before its messages in what a model reads.
_BEFORE: Final = ("model", "tools", "system", "instructions")
#: The conversation itself, and what names it.
_UNCOMPARED: Final = frozenset({"messages", "input", "previous_response_id", "prompt_cache_key", "metadata"})
#: Characters shown around the first difference, and of a message that was added.
_CONTEXT: Final = 24
_SHOWN: Final = 72
_PREVIEW: Final = 200


def changed(receipt: str, found: Compared | None) -> dict[str, object]:
    """``added``: messages by role, size and beginning; ``broken``: None, or where both part and about how many tokens
    of cache that throws away; ``settings``: other fields that differ."""
    if found is None:
        return {"receipt": receipt, "previous": None, "kept": 0, "added": [], "broken": None, "settings": []}
    fields = _fields(found.frames[0]), _fields(found.frames[1])
    settings = [
        {"name": name, **_parting(*(_text(one.get(name)) for one in fields))}
        for name in sorted(fields[0].keys() | fields[1].keys())
        if fields[0].get(name) != fields[1].get(name)
    ]
    told = codec_of(found.record.dialect).message
    return {
        "receipt": receipt,
        "previous": found.previous.receipt,
        "edge": found.record.edge,
        "chained": found.chained,
        "kept": found.kept,
        "messages": found.record.messages,
        "added": [_added(found.record.dialect, message) for message in found.added],
        "broken": _broken(found, [one for one in settings if one["name"] in _BEFORE], lambda one: _said(told(one.raw))),
        "settings": [one for one in settings if one["name"] not in _BEFORE],
        "prompt_tokens": found.record.prompt_tokens,
        "cached_tokens": found.record.cached_tokens,
        "previous_tokens": found.previous.prompt_tokens,
    }


def _broken(
    found: Compared, fields: list[dict[str, Any]], text: Callable[[StoredMessage], str]
) -> dict[str, object] | None:
    if fields:
        first = min(fields, key=lambda one: _BEFORE.index(one["name"]))
        return {"at": first["name"], "message": None, "role": None, "tokens": found.previous.prompt_tokens, **first}
    if found.was is None or found.now is None:
        return None
    was, now = text(found.was), text(found.now)
    if was == now:  # they differ in what is no text
        was, now = (one.raw.decode("utf-8", "replace") for one in (found.was, found.now))
    parting = _parting(was, now)
    if found.of_answer:
        tokens = round(found.previous.completion_tokens * (1 - parting["offset"] / max(len(was), 1)))
    else:
        lost = found.lost - len(found.was.raw) * parting["offset"] / max(len(was), 1)
        tokens = round(found.previous.prompt_tokens * lost / max(found.size, 1))
    place = {"at": "answer" if found.of_answer else "message", "message": found.kept, "role": found.was.role}
    return {**place, "tokens": tokens, **parting}


def _parting(was: str, now: str) -> dict[str, Any]:
    """Both from a little before their first difference on."""
    offset = shared(was, now)
    start = max(offset - _CONTEXT, 0)
    return {"offset": offset, "was": was[start : offset + _SHOWN], "now": now[start : offset + _SHOWN]}


def _added(dialect: Dialect, message: StoredMessage) -> dict[str, object]:
    text = _said(codec_of(dialect).message(message.raw))
    return {"role": message.role, "characters": len(text), "begins": text[:_PREVIEW]}


def _said(message: Any) -> str:
    """A message's text, whatever it is made of."""
    return "\n".join(_part(part) for part in message.parts)


def _part(part: object) -> str:
    match part:
        case Text(text) | Thinking(text):
            return text
        case ToolUse(_, name, arguments):
            return f"{name} {arguments}"
        case ToolResult(_, content):
            return content
        case Image(media_type, source):
            return f"[image {media_type} {source}]"
        case _:
            return ""


def _fields(frame: Frame) -> dict[str, Any]:
    """What stands around the messages; empty where that is no JSON."""
    try:
        found = json.loads(frame.head + frame.tail)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: _unmarked(value) for name, value in found.items() if name not in _UNCOMPARED}


def _unmarked(value: Any) -> Any:
    """Without the marks of where a cache may end: they move with every request."""
    if isinstance(value, list):
        return [_unmarked(one) for one in value]
    if isinstance(value, dict):
        return {name: _unmarked(one) for name, one in value.items() if name != "cache_control"}
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
