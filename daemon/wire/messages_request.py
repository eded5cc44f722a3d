"""Reading messages requests: `message` for one message wherever it comes from, `parse` for an engine of ours.

`message` takes block kinds it does not know (they are shown as JSON); `parse` refuses them, since no engine of ours
reads them. Anthropic puts tool results into user messages; the neutral form gives them the role ``tool``.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from daemon.core.errors import BadRequest
from daemon.core.records import (
    ChatRequest,
    Image,
    Message,
    Part,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
)
from daemon.wire import jsontext, seal
from daemon.wire.canonical import system_texts
from daemon.wire.chat_request import NO_ARGUMENTS, offered
from daemon.wire.fields import Fields, read_object, wrong
from daemon.wire.parts import encoded_image, linked_image, result, unknown

#: Claude Code sends role "system" in the middle of a conversation.
_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}
_CHOICES: Final[dict[str, Literal["auto", "none", "required", "named"]]] = {
    "auto": "auto",
    "any": "required",
    "none": "none",
    "tool": "named",
}
#: Below how many tokens of thought an effort is what OpenAI calls so.
_BUDGETS: Final = ((4096, "low"), (16384, "medium"), (float("inf"), "high"))
_READABLE: Final = ("text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking")


def message(value: object, where: str = "message") -> Message:
    """One message. Raises BadRequest on wrong types."""
    fields = Fields(value, where)
    name = fields.text("role") or ""
    if (role := _ROLES.get(name)) is None:
        raise wrong(fields.at("role"), f"one of {', '.join(_ROLES)}", name)
    parts = _content(fields)
    if role == "user" and parts and all(isinstance(part, ToolResult) for part in parts):
        role = "tool"
    return Message(role, tuple(parts))


def _content(fields: Fields) -> list[Part]:
    content = fields.raw.get("content")
    if isinstance(content, str):
        return [Text(content)] if content else []
    return [_block(Fields(item, f"{fields.at('content')}.{i}")) for i, item in enumerate(fields.items("content"))]


def _block(fields: Fields) -> Part:
    match fields.text("type"):
        case "text":
            return Text(fields.text("text") or "")
        case "thinking":
            return Thinking(fields.text("thinking") or "", seal.read(seal.SIGNED, fields.text("signature")))
        case "redacted_thinking":
            return Thinking("", seal.read(seal.HIDDEN, fields.text("data")))
        case "image":
            return _image(fields.inner("source") or Fields({}, fields.at("source")))
        case "tool_use":
            written = fields.raw.get("input")
            arguments = written if isinstance(written, str) else jsontext.text({} if written is None else written)
            return ToolUse(fields.text("id") or "", fields.text("name") or "", arguments)
        case "tool_result":
            failed = bool(fields.flag("is_error"))
            return result(fields.text("tool_use_id") or "", _content(fields), is_error=failed)
    return unknown(dict(fields.raw))


def _image(source: Fields) -> Image:
    if source.text("type") == "base64":
        return encoded_image(source.text("media_type") or "image/*", source.text("data") or "")
    return linked_image(source.text("url") or source.text("file_id") or "")


def parse(body: bytes) -> ChatRequest:
    fields = read_object(body)
    items = fields.items("messages")
    if not items:
        raise BadRequest("messages: at least one message is needed")
    tools, choice = _tools(fields), fields.inner("tool_choice")
    chosen = _tool_choice(choice)
    return ChatRequest(
        model=fields.text("model") or "default",
        messages=(*_system(fields), *_messages(items)),
        tools=offered(tools, chosen),
        tool_choice=chosen,
        parallel_tool_calls=_parallel(choice),
        sampling=Sampling(
            max_tokens=fields.whole("max_tokens", 1),
            temperature=fields.number("temperature", 0, 100),
            top_p=fields.number("top_p", 0, 1),
            top_k=fields.whole("top_k"),
            stop=fields.texts("stop_sequences"),
        ),
        stream=fields.flag("stream") or False,
        include_usage=True,
        response_schema=_response_schema(fields),
        effort=_effort(fields),
    )


def _system(fields: Fields) -> tuple[Message, ...]:
    system = fields.raw.get("system")
    if system is not None and not isinstance(system, str | list):
        raise wrong("system", "a string or a list of text blocks", system)
    texts = system_texts(system)
    return (Message("system", (Text("\n\n".join(texts)),)),) if texts else ()


def _messages(items: list[Any]) -> list[Message]:
    """The conversation with a message of its own for each tool result."""
    messages: list[Message] = []
    for i, item in enumerate(items):
        read = message(_readable(item, f"messages.{i}"), f"messages.{i}")
        if read.role not in ("user", "tool"):
            messages.append(read)
            continue
        results = [part for part in read.parts if isinstance(part, ToolResult)]
        rest = tuple(part for part in read.parts if not isinstance(part, ToolResult))
        messages += [Message("tool", (result,)) for result in results]
        if rest or not results:
            messages.append(Message("user", rest))
    return messages


def _readable(item: object, where: str) -> object:
    """The message without what its vendor's servers did (searches, code they ran): it says nothing to another engine,
    and must not end a conversation that moved. What the person sent is not left out: it is refused where it cannot be
    read.
    """
    content = item.get("content") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(content, list):
        return item
    kept = []
    for i, block in enumerate(content):
        kind = block.get("type") if isinstance(block, dict) else None
        text = _document(block) if kind == "document" else None
        if text is not None:
            kept.append({"type": "text", "text": text})
        elif not isinstance(block, dict) or kind in _READABLE:
            kept.append(block)
        elif item.get("role") != "assistant":
            raise wrong(f"{where}.content.{i}.type", f"one of {', '.join(_READABLE)}", kind)
    return {**item, "content": kept}


def _document(block: dict[str, Any]) -> str | None:
    """A document that came as text; None for any other."""
    source = block.get("source")
    text = source.get("data") if isinstance(source, dict) and source.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _tools(fields: Fields) -> tuple[Tool, ...]:
    """The client's tools. Those of a vendor's type without a schema run on its servers: no engine of ours has them."""
    tools: list[Tool] = []
    for i, item in enumerate(fields.items("tools")):
        tool = Fields(item, f"tools.{i}")
        schema = tool.inner("input_schema")
        if schema is None and tool.text("type") not in (None, "custom"):
            continue
        name = tool.text("name")
        if not name:
            raise wrong(f"tools.{i}.name", "a name", name)
        tools.append(Tool(name, tool.text("description") or "", schema.raw if schema and schema.raw else NO_ARGUMENTS))
    return tuple(tools)


def _tool_choice(choice: Fields | None) -> ToolChoice:
    if choice is None:
        return ToolChoice()
    mode = _CHOICES.get(choice.text("type") or "")
    if mode is None:
        raise wrong("tool_choice.type", f"one of {', '.join(_CHOICES)}", choice.raw.get("type"))
    name = choice.text("name")
    if mode == "named" and not name:
        raise wrong("tool_choice.name", "the name of a tool", name)
    return ToolChoice(mode, name if mode == "named" else None)


def _parallel(choice: Fields | None) -> bool | None:
    alone = choice.flag("disable_parallel_tool_use") if choice else None
    return None if alone is None else not alone


def _effort(fields: Fields) -> str | None:
    """Told as such, or as the tokens that thoughts may take."""
    config, thinking = fields.inner("output_config"), fields.inner("thinking")
    if thinking is not None and thinking.text("type") == "disabled":
        return "none"
    if config is not None and (effort := config.text("effort")):
        return effort
    budget = thinking.whole("budget_tokens") if thinking else None
    return None if budget is None else next(name for limit, name in _BUDGETS if budget < limit)


def _response_schema(fields: Fields) -> Mapping[str, Any] | None:
    config = fields.inner("output_config")
    wanted = (config.inner("format") if config else None) or fields.inner("output_format")
    if wanted is None:
        return None
    if wanted.text("type") != "json_schema":
        raise wrong(wanted.at("type"), "json_schema", wanted.raw.get("type"))
    schema = wanted.inner("schema")
    return schema.raw if schema else {}
