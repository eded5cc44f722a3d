"""Reading Responses items: one input item, or the items of an answer in a row, as one message.

A model's answer is several items here (thoughts, words, calls) and one message everywhere else: items that a model made
and that follow each other are read together. Item kinds that have no word of their own are shown as JSON.
"""

from collections.abc import Mapping
from typing import Any, Final

from daemon.core.records import Image, Message, Part, Role, Text, Thinking, ToolUse
from daemon.wire import jsontext, seal
from daemon.wire.fields import Fields, wrong
from daemon.wire.parts import linked_image, result, unknown

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_TEXTS: Final = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
#: What a call is made with, by its kind. Calls that run on the vendor's servers have no word of their own.
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
#: Agents drop or renew these when they send an item again.
_MOVING: Final = ("id", "status", "cache_control")


def is_answer(item: object) -> bool:
    """Whether a model made this item. Sessions hang on it: it says which items are one message."""
    if not isinstance(item, dict):
        return False
    kind = item.get("type") or "message"
    if kind == "message":
        return item.get("role") == "assistant"
    return isinstance(kind, str) and (kind == "reasoning" or kind.endswith("_call"))


def message(items: object, where: str = "input") -> Message:
    """One message of one input item, or of a row of items that a model made. Raises BadRequest on wrong types."""
    if not isinstance(items, list) or not items:
        raise wrong(where, "a list of items", items)
    if not is_answer(items[0]):
        return _item(items[0], where)
    parts = [part for i, item in enumerate(items) for part in _answered(Fields(item, f"{where}.{i}"))]
    return Message("assistant", tuple(parts))


def _item(item: object, where: str) -> Message:
    if isinstance(item, str):
        return Message("user", (Text(item),) if item else ())
    fields = Fields(item, where)
    kind = fields.text("type") or "message"
    if kind.endswith("_output"):
        return Message("tool", (result(fields.text("call_id") or "", _output(fields)),))
    if kind != "message":
        return Message("user", (unlike(fields.raw),))
    name = fields.text("role") or ""
    if (role := _ROLES.get(name)) is None:
        raise wrong(fields.at("role"), f"one of {', '.join(_ROLES)}", name)
    return Message(role, tuple(_content(fields, "content")))


def _answered(fields: Fields) -> list[Part]:
    kind = fields.text("type") or "message"
    if kind == "message":
        return _content(fields, "content")
    if kind == "reasoning":
        return [_thought(fields)]
    if kind in _CALLS:
        return [call(fields, kind)]
    return [unlike(fields.raw)]


def call(fields: Fields, kind: str) -> ToolUse:
    """A call of one of the client's tools. Free text becomes the argument ``input``, as `Tool.custom` says."""
    written = fields.raw.get(_CALLS[kind])
    if kind == "custom_tool_call":
        arguments = jsontext.text({"input": written if isinstance(written, str) else ""})
    else:
        arguments = written if isinstance(written, str) else jsontext.text({} if written is None else written)
    name = fields.text("name") or kind.removesuffix("_call")
    return ToolUse(fields.text("call_id") or fields.text("id") or "", full(name, fields.text("namespace")), arguments)


def full(name: str, namespace: str | None) -> str:
    """A tool's name with its namespace, as other dialects know it."""
    return f"{namespace}__{name}" if namespace else name


def _thought(fields: Fields) -> Thinking:
    texts = [part.text for name in ("summary", "content") for part in _content(fields, name) if isinstance(part, Text)]
    vendor = f"{seal.ENCRYPTED}{fields.text('id') or ''}:"
    return Thinking("\n\n".join(texts), seal.read(vendor, fields.text("encrypted_content")))


def _output(fields: Fields) -> list[Part]:
    output = fields.raw.get("output")
    if isinstance(output, str | list):
        return _content(fields, "output")
    return [Text(jsontext.text(output))] if output else []


def _content(fields: Fields, name: str) -> list[Part]:
    content = fields.raw.get(name)
    if isinstance(content, str):
        return [Text(content)] if content else []
    return [_part(Fields(item, f"{fields.at(name)}.{i}")) for i, item in enumerate(fields.items(name))]


def _part(fields: Fields) -> Part:
    kind = fields.text("type")
    if kind in _TEXTS:
        return Text(fields.text("text") or "")
    if kind == "refusal":
        return Text(fields.text("refusal") or "")
    if kind == "input_image":
        return _image(fields)
    return unlike(fields.raw)


def _image(fields: Fields) -> Image:
    link = fields.raw.get("image_url")
    url = link if isinstance(link, str) else Fields(link or {}, fields.at("image_url")).text("url")
    return linked_image(url or fields.text("file_id") or "")


def unlike(item: Mapping[str, Any]) -> Part:
    """An item or part of another kind, shown and compared as its JSON."""
    return unknown({name: value for name, value in item.items() if name not in _MOVING})
