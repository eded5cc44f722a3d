"""Reading chat.completions requests: `message` for one message wherever it comes from, `parse` for an engine of ours.

`message` takes block kinds it does not know (they are shown as JSON); `parse` refuses them, since no engine of ours
reads them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from daemon.core.errors import BadRequest
from daemon.core.records import (
    ChatRequest,
    Message,
    Part,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolUse,
)
from daemon.wire import jsontext, seal
from daemon.wire.fields import Fields, read_object, wrong
from daemon.wire.parts import linked_image, result, unknown

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXTS: Final = ("text", "input_text", "output_text")
_READABLE: Final = (*_TEXTS, "refusal", "image_url", "thinking", "reasoning")
NO_ARGUMENTS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


def message(value: object, where: str = "message") -> Message:
    """One message. Raises BadRequest on wrong types."""
    fields = Fields(value, where)
    name = fields.text("role") or ""
    if (role := _ROLES.get(name)) is None:
        raise wrong(fields.at("role"), f"one of {', '.join(_ROLES)}", name)
    parts = _content(fields)
    if role == "tool":
        identity = fields.text("tool_call_id") or fields.text("name") or ""
        return Message(role, (result(identity, parts),))
    if role == "assistant":
        return Message(role, (*_reasoning(fields), *parts, *_calls(fields)))
    return Message(role, tuple(parts))


def _content(fields: Fields) -> list[Part]:
    content = fields.raw.get("content")
    if isinstance(content, str):
        parts: list[Part] = [Text(content)] if content else []
    else:
        parts = [_part(Fields(item, f"{fields.at('content')}.{i}")) for i, item in enumerate(fields.items("content"))]
    if refusal := fields.text("refusal"):
        parts.append(Text(refusal))
    return parts


def _part(fields: Fields) -> Part:
    kind = fields.text("type") or ("text" if "text" in fields.raw else "")
    if kind in _TEXTS:
        return Text(fields.text("text") or "")
    if kind == "refusal":
        return Text(fields.text("refusal") or "")
    if kind in ("thinking", "reasoning"):
        return Thinking(loose_text(fields.raw.get("thinking") or fields.raw.get("text")))
    if kind == "image_url":
        link = fields.raw.get("image_url")
        url = link if isinstance(link, str) else Fields(link, fields.at("image_url")).text("url")
        return linked_image(url or "")
    return unknown(dict(fields.raw))


def loose_text(value: object) -> str:
    """Text, or the texts of a list of blocks."""
    if isinstance(value, list):
        return "".join(loose_text(item.get("text")) for item in value if isinstance(item, dict))
    return value if isinstance(value, str) else ""


def _reasoning(fields: Fields) -> list[Part]:
    for name in ("reasoning_content", "reasoning"):
        if text := loose_text(fields.raw.get(name)):
            return [Thinking(text, seal.PLAIN)]
    return []


def _calls(fields: Fields) -> list[Part]:
    calls: list[Part] = []
    for i, item in enumerate(fields.items("tool_calls")):
        call = Fields(item, f"{fields.at('tool_calls')}.{i}")
        function = call.inner("function") or call.inner("custom") or Fields({}, call.at("function"))
        written = function.raw.get("arguments", function.raw.get("input"))
        text = written if isinstance(written, str) else jsontext.text(written or {})
        calls.append(ToolUse(call.text("id") or "", function.text("name") or "", text))
    if legacy := fields.inner("function_call"):
        calls.append(ToolUse("", legacy.text("name") or "", legacy.text("arguments") or ""))
    return calls


def parse(body: bytes) -> ChatRequest:
    fields = read_object(body)
    items = fields.items("messages")
    if not items:
        raise BadRequest("messages: at least one message is needed")
    for i, item in enumerate(items):
        _refuse_unreadable(item, f"messages.{i}")
    if (fields.whole("n", 1) or 1) > 1:
        raise wrong("n", "1: this engine gives one answer a request", fields.raw["n"])
    tools = _tools(fields)
    choice, allowed = _tool_choice(fields)
    tools = offered(tools, choice, allowed)
    options = fields.inner("stream_options")
    return ChatRequest(
        model=fields.text("model") or "default",
        messages=tuple(message(item, f"messages.{i}") for i, item in enumerate(items)),
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=fields.flag("parallel_tool_calls"),
        sampling=_sampling(fields),
        stream=fields.flag("stream") or False,
        include_usage=bool(options and options.flag("include_usage")),
        response_schema=response_schema(fields.inner("response_format")),
        effort=fields.text("reasoning_effort"),
        cache_key=fields.text("prompt_cache_key"),
    )


def _refuse_unreadable(item: object, where: str) -> None:
    content = item.get("content") if isinstance(item, dict) else None
    for i, part in enumerate(content if isinstance(content, list) else []):
        kind = part.get("type", "text") if isinstance(part, dict) else None
        if kind is not None and kind not in _READABLE:
            raise wrong(f"{where}.content.{i}.type", "text or image_url", kind)


def _sampling(fields: Fields) -> Sampling:
    limit = fields.whole("max_completion_tokens", 1)
    return Sampling(
        max_tokens=fields.whole("max_tokens", 1) if limit is None else limit,
        temperature=fields.number("temperature", 0, 100),
        top_p=fields.number("top_p", 0, 1),
        top_k=fields.whole("top_k"),
        min_p=fields.number("min_p", 0, 1),
        seed=fields.whole("seed"),
        stop=fields.texts("stop"),
        presence_penalty=fields.number("presence_penalty", -2, 2) or 0.0,
        frequency_penalty=fields.number("frequency_penalty", -2, 2) or 0.0,
        logprobs=fields.flag("logprobs") or False,
        top_logprobs=fields.whole("top_logprobs", 0, 20) or 0,
    )


def _tools(fields: Fields) -> tuple[Tool, ...]:
    """Function tools. Tools of other kinds run on the vendor's servers; no engine of ours can offer them."""
    tools: list[Tool] = []
    for i, item in enumerate(fields.items("tools")):
        tool = Fields(item, f"tools.{i}")
        if (tool.text("type") or "function") != "function":
            continue
        function = tool.inner("function")
        name = function.text("name") if function else None
        if function is None or not name:
            raise wrong(f"tools.{i}.function.name", "a name", None)
        parameters = function.inner("parameters")
        schema = parameters.raw if parameters and parameters.raw else NO_ARGUMENTS
        tools.append(Tool(name, function.text("description") or "", schema))
    return tuple(tools)


def _tool_choice(fields: Fields) -> tuple[ToolChoice, set[str] | None]:
    """The choice, and the names it is limited to where it is limited."""
    value = fields.raw.get("tool_choice")
    if value is None or value == "auto":
        return ToolChoice(), None
    if value == "none":
        return ToolChoice("none"), None
    if value == "required":
        return ToolChoice("required"), None
    if isinstance(value, dict) and value.get("type") == "allowed_tools":
        allowed = Fields(value, "tool_choice").inner("allowed_tools") or Fields({}, "tool_choice.allowed_tools")
        names = {_function_name(Fields(item, allowed.at("tools"))) for item in allowed.items("tools")}
        return ToolChoice("required" if allowed.text("mode") == "required" else "auto"), names
    if isinstance(value, dict) and value.get("type") == "function":
        return ToolChoice("named", _function_name(Fields(value, "tool_choice"))), None
    raise wrong("tool_choice", "auto, none, required or a function", value)


def _function_name(fields: Fields) -> str:
    function = fields.inner("function") or fields
    name = function.text("name")
    if not name:
        raise wrong(function.at("name"), "the name of a tool", name)
    return name


def offered(tools: Iterable[Tool], choice: ToolChoice, allowed: set[str] | None = None) -> tuple[Tool, ...]:
    """The tools that are allowed. Raises BadRequest when the choice forces one that is not on offer."""
    tools = tuple(tool for tool in tools if allowed is None or tool.name in allowed)
    if choice.mode == "required" and not tools:
        raise BadRequest("tool_choice: a tool is required, and tools offers none")
    if choice.mode == "named" and choice.name not in [tool.name for tool in tools]:
        raise BadRequest(f"tool_choice: no tool is called {choice.name!r}")
    return tools


def response_schema(wanted: Fields | None) -> Mapping[str, Any] | None:
    """What an answer must be; {}: any JSON. Raises BadRequest."""
    kind = wanted.text("type") if wanted else None
    if wanted is None or kind in (None, "text"):
        return None
    if kind == "json_object":
        return {}
    if kind == "json_schema":
        schema = (wanted.inner("json_schema") or wanted).inner("schema")
        return schema.raw if schema else {}
    raise wrong(wanted.at("type"), "text, json_object or json_schema", kind)
