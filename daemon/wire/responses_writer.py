"""Writing a request as Responses, for a provider that speaks only that. Nothing is kept there (``store``)."""

from typing import Any, Final

from daemon.core.records import ChatRequest, Image, Message, Part, Text, Thinking, Tool, ToolResult, ToolUse
from daemon.wire import jsontext, seal
from daemon.wire.chat_writer import sendable
from daemon.wire.reader import call_id, tool_name

_EFFORTS: Final = {"max": "xhigh"}


def write(request: ChatRequest) -> bytes:
    """Raises BadRequest for what cannot be told in this dialect."""
    messages = request.messages
    count = next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))
    body: dict[str, Any] = {
        "model": request.model,
        "input": [item for message in messages[count:] for item in _items(message)],
        "store": False,
        **_options(request),
    }
    if count:
        body["instructions"] = "\n\n".join(text for message in messages[:count] if (text := message.text))
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        choice = request.tool_choice
        named = {"type": "function", "name": tool_name(choice.name or "")}
        body["tool_choice"] = named if choice.mode == "named" else choice.mode
        if request.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    if (schema := request.response_schema) is not None:
        form = {"type": "json_schema", "name": "answer", "schema": dict(schema), "strict": False}
        body["text"] = {"format": form if schema else {"type": "json_object"}}
    return jsontext.encode(body)


def _options(request: ChatRequest) -> dict[str, Any]:
    sampling, effort = request.sampling, request.effort
    found: dict[str, Any] = {
        "stream": request.stream or None,
        "max_output_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "prompt_cache_key": request.cache_key,
    }
    if effort is not None:
        found["reasoning"] = {"effort": _EFFORTS.get(effort, effort), "summary": "auto"}
        # Models that do not think refuse to be asked for it.
        found["include"] = ["reasoning.encrypted_content"] if effort != "none" else None
    return {name: value for name, value in found.items() if value is not None}


def _items(message: Message) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    words = "output_text" if message.role == "assistant" else "input_text"
    role = "developer" if message.role == "system" else "user" if message.role == "tool" else message.role
    for part in message.parts:
        if (content := _content(part, words)) is not None:
            if not (items and items[-1]["type"] == "message"):
                items.append({"type": "message", "role": role, "content": []})
            items[-1]["content"].append(content)
        elif (item := _item(part)) is not None:
            items.append(item)
    return items


def _content(part: Part, words: str) -> dict[str, Any] | None:
    match part:
        case Text(text) if text:
            return {"type": words, "text": text, **({"annotations": []} if words == "output_text" else {})}
        case Image():
            return {"type": "input_image", "image_url": sendable(part), "detail": "auto"}
    return None


def _item(part: Part) -> dict[str, Any] | None:
    match part:
        case Thinking(text, sealed) if (value := seal.value(sealed, seal.ENCRYPTED)) is not None:
            id, _, encrypted = value.partition(":")
            summary = [{"type": "summary_text", "text": text}] if text else []
            item = {"type": "reasoning", "summary": summary, "encrypted_content": encrypted}
            return {**item, "id": id} if id else item
        case ToolUse(id, name, written):
            return {
                "type": "function_call",
                "call_id": call_id(id),
                "name": tool_name(name),
                "arguments": written or "{}",
            }
        case ToolResult(id, content, _, images):
            output: Any = content
            if images:
                said = [{"type": "input_text", "text": content}] if content else []
                output = [*said, *(_content(image, "input_text") for image in images)]
            return {"type": "function_call_output", "call_id": call_id(id), "output": output}
    return None


def _tool(tool: Tool) -> dict[str, Any]:
    # Strict unless told otherwise here, where the other dialects are not.
    named = {"type": "function", "name": tool_name(tool.name), "description": tool.description}
    return {**named, "parameters": dict(tool.schema), "strict": tool.strict}
