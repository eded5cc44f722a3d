"""The canonical form of a message: what stays equal when an agent sends it again.

Agents move ``cache_control``, fold one-text lists into strings, drop or reorder thinking, trim the answer's text and
write tool arguments anew. None of that changes a key; anything a person would call another message does. Sessions
hang on this: a key that varies between turns breaks the prefix chain of every conversation.
"""

from hashlib import blake2b
from typing import Any, Final

from daemon.core.records import Image, Message, Part, Text, Thinking, ToolResult, ToolUse
from daemon.wire import jsontext

#: Claude Code puts a first system block here whose value changes between calls.
_BILLING: Final = "x-anthropic-billing-header:"


def digest(value: object) -> bytes:
    """16 bytes of BLAKE2b over compact JSON."""
    return blake2b(jsontext.encode(value), digest_size=16).digest()


def key(message: Message) -> bytes:
    """The message's key (16 bytes)."""
    forms: list[list[object]] = []
    for part in message.parts:
        if isinstance(part, Text) and forms and forms[-1][0] == "text":
            forms[-1][1] = f"{forms[-1][1]}{part.text}"
        elif (form := _form(part)) is not None:
            forms.append(form)
    if message.role == "assistant":
        for form in forms:
            if form[0] == "text":
                form[1] = str(form[1]).strip()
    return digest([message.role, [form for form in forms if form != ["text", ""]]])


def _form(part: Part) -> list[object] | None:
    match part:
        case Text(text):
            return ["text", text]
        case Thinking():
            return None
        case Image(media_type, source):
            return ["image", media_type, source]
        case ToolUse(id, name, written):
            return ["use", id, name, _sorted(written)]
        case ToolResult(id, content, is_error):
            return ["result", id, content, is_error]


def _sorted(written: str) -> object:
    """Tool arguments however they were written: sorted where they are an object, else the trimmed text."""
    value = jsontext.arguments(written)
    return written.strip() if value is None else _ordered(value)


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def system_texts(system: Any) -> list[str]:
    """Anthropic's ``system`` as texts, without Claude's billing block; [] when it is neither text nor blocks."""
    blocks = [system] if isinstance(system, str) else system if isinstance(system, list) else []
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    return [text for text in texts if isinstance(text, str) and text and not text.startswith(_BILLING)]


def readable(message: Message) -> str:
    """A message as text for previews and search: what was said, called and returned; thinking is left out."""
    lines: list[str] = []
    for part in message.parts:
        match part:
            case Text(text):
                lines.append(text)
            case ToolUse(_, name, written):
                lines.append(f"{name} {written}")
            case ToolResult(_, content, _):
                lines.append(content)
            case Image() | Thinking():
                pass
    return "\n".join(line for line in lines if line)
