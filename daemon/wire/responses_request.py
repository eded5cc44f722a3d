"""Reading Responses requests for an engine of ours or of another dialect. Refuses what neither could answer.

State that a vendor would hold (``previous_response_id``, ``item_reference``, stored prompts) is not here: a request
that refers to it is refused.
"""

from collections.abc import Mapping
from typing import Any, Final

from daemon.core.errors import BadRequest
from daemon.core.records import ChatRequest, Message, Sampling, Text, Tool, ToolChoice
from daemon.wire.chat_request import NO_ARGUMENTS, offered, response_schema
from daemon.wire.fields import Fields, read_object, wrong
from daemon.wire.responses_items import full, is_answer, message

#: Items that say something to another engine. The rest (what the vendor's servers did, what only it can read) is
#: skipped: it must not end a conversation that moved.
_ITEMS: Final = ("message", "reasoning", "function_call", "custom_tool_call", "local_shell_call", "item_reference")
_READABLE: Final = ("input_text", "output_text", "text", "input_image", "refusal", "summary_text", "reasoning_text")


def parse(body: bytes) -> ChatRequest:
    fields = read_object(body)
    for name in ("previous_response_id", "conversation", "prompt"):
        if fields.raw.get(name) is not None:
            raise BadRequest(f"{name}: this engine keeps no conversations", hint="send the whole conversation in input")
    messages = _messages(fields)
    if not messages:
        raise BadRequest("input: at least one item is needed")
    tools = _tools(fields.items("tools"), "tools", "")
    choice, allowed = _tool_choice(fields)
    reasoning, text = fields.inner("reasoning"), fields.inner("text")
    return ChatRequest(
        model=fields.text("model") or "default",
        messages=(*_instructions(fields), *messages),
        tools=offered(tools, choice, allowed),
        tool_choice=choice,
        parallel_tool_calls=fields.flag("parallel_tool_calls"),
        sampling=_sampling(fields),
        stream=fields.flag("stream") or False,
        include_usage=True,
        response_schema=response_schema(text.inner("format") if text else None),
        effort=reasoning.text("effort") if reasoning else None,
        cache_key=fields.text("prompt_cache_key"),
    )


def _instructions(fields: Fields) -> tuple[Message, ...]:
    text = fields.text("instructions")
    return (Message("system", (Text(text),)),) if text else ()


def _messages(fields: Fields) -> list[Message]:
    given = fields.raw.get("input")
    items = [given] if isinstance(given, str) else fields.items("input")
    messages: list[Message] = []
    row: list[Any] = []
    for i, item in enumerate(items):
        if isinstance(item, dict) and not _is_known(item.get("type") or "message"):
            continue
        _refuse_unreadable(item, f"input.{i}")
        if is_answer(item):
            row.append(item)
            continue
        messages += [message(row)] if row else []
        row = []
        messages.append(message([item], f"input.{i}"))
    return [*messages, message(row)] if row else messages


def _is_known(kind: object) -> bool:
    return not isinstance(kind, str) or kind in _ITEMS or kind.endswith("_output")


def _refuse_unreadable(item: object, where: str) -> None:
    if not isinstance(item, dict):
        return
    if item.get("type") == "item_reference":
        raise BadRequest(f"{where}: {item.get('id')!r} refers to an item that is not here", hint="send the item itself")
    for name in ("content", "output"):
        parts = item.get(name)
        for i, part in enumerate(parts if isinstance(parts, list) else []):
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(part, dict) and kind not in _READABLE:
                raise wrong(f"{where}.{name}.{i}.type", f"one of {', '.join(_READABLE)}", kind)


def _sampling(fields: Fields) -> Sampling:
    return Sampling(
        max_tokens=fields.whole("max_output_tokens", 1),
        temperature=fields.number("temperature", 0, 100),
        top_p=fields.number("top_p", 0, 1),
    )


def _tools(items: list[Any], where: str, namespace: str) -> list[Tool]:
    """The client's own tools. Those of other kinds run on the vendor's servers: no engine of ours has them."""
    tools: list[Tool] = []
    for i, item in enumerate(items):
        tool = Fields(item, f"{where}.{i}")
        kind = tool.text("type") or "function"
        if kind == "namespace":
            tools += _tools(tool.items("tools"), tool.at("tools"), tool.text("name") or "")
        elif kind in ("function", "custom"):
            tools.append(_tool(tool, namespace, custom=kind == "custom"))
    return tools


def _tool(tool: Fields, namespace: str, *, custom: bool) -> Tool:
    name = tool.text("name")
    if not name:
        raise wrong(tool.at("name"), "a name", name)
    description = tool.text("description") or ""
    if custom:
        return Tool(full(name, namespace), description, _free_text(tool), custom=True, namespace=namespace)
    parameters = tool.inner("parameters")
    schema = parameters.raw if parameters and parameters.raw else NO_ARGUMENTS
    return Tool(full(name, namespace), description, schema, strict=tool.flag("strict") or False, namespace=namespace)


def _free_text(tool: Fields) -> Mapping[str, Any]:
    """The arguments of a tool that takes free text: all of it in ``input``, its grammar told in words."""
    form = tool.inner("format")
    text = {"type": "string"}
    if form is not None and (grammar := form.text("definition")):
        text["description"] = f"Must match this {form.text('syntax') or 'lark'} grammar:\n{grammar}"
    return {"type": "object", "properties": {"input": text}, "required": ["input"]}


def _tool_choice(fields: Fields) -> tuple[ToolChoice, set[str] | None]:
    """The choice, and the names it is limited to where it is limited."""
    value = fields.raw.get("tool_choice")
    if value is None or value in ("auto", "none", "required"):
        return ToolChoice(value or "auto"), None
    if not isinstance(value, dict):
        raise wrong("tool_choice", "auto, none, required or a tool", value)
    choice = Fields(value, "tool_choice")
    if choice.text("type") == "allowed_tools":
        names = {Fields(item, choice.at("tools")).text("name") or "" for item in choice.items("tools")}
        return ToolChoice("required" if choice.text("mode") == "required" else "auto"), names
    if choice.text("type") in ("function", "custom") and (name := choice.text("name")):
        return ToolChoice("named", full(name, choice.text("namespace"))), None
    raise wrong("tool_choice", "auto, none, required or a function", value)
