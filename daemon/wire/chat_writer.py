"""Writing a request as chat.completions, for a provider that speaks only that: words that every such server knows.

System messages lead, joined into one, and later ones become the user's (many templates refuse them in the middle);
neighbours of one role are one message; pictures that a tool gave back follow its results.
"""

import re
from typing import Any, Final

from daemon.core.errors import BadRequest
from daemon.core.records import ChatRequest, Image, Message, Text, Thinking, Tool, ToolResult, ToolUse
from daemon.wire import jsontext, seal
from daemon.wire.reader import call_id, tool_name

#: Names of models that take ``max_completion_tokens`` only; other servers know only ``max_tokens``.
_OPENAIS: Final = re.compile(r"(?:openai/)?(?:gpt-(?!oss)|chatgpt-|o\d)")
_EFFORTS: Final = {"max": "high", "xhigh": "high"}


def write(request: ChatRequest) -> bytes:
    """Raises BadRequest for what cannot be told in this dialect."""
    system, rest = leading(request.messages)
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    pictures: list[Image] = []
    for message in rest:
        if message.role != "tool":
            _add_user(messages, list(pictures))
            pictures = []
        _add(messages, message, pictures)
    _add_user(messages, list(pictures))
    body: dict[str, Any] = {"model": request.model, "messages": messages, **_numbers(request)}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body |= _choice(request)
    if (schema := request.response_schema) is not None:
        named = {"name": "answer", "schema": dict(schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": named} if schema else {"type": "json_object"}
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return jsontext.encode(body)


def leading(messages: tuple[Message, ...]) -> tuple[str, list[Message]]:
    """The text of the system messages that come first, and the others, system messages among them made the user's."""
    count = next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))
    system = "\n\n".join(text for message in messages[:count] if (text := message.text))
    rest = [Message("user", one.parts) if one.role == "system" else one for one in messages[count:]]
    return system, rest


def sendable(image: Image) -> str:
    """Raises BadRequest for an image that another provider cannot get at."""
    if not image.url:
        raise BadRequest(f"the image {image.source[:80]!r} is another provider's file", hint="send the image itself")
    return image.url


def _add(messages: list[dict[str, Any]], message: Message, pictures: list[Image]) -> None:
    if message.role == "assistant":
        if answer := _assistant(message):
            messages.append(answer)
        return
    for part in message.parts:
        if isinstance(part, ToolResult):
            messages.append({"role": "tool", "tool_call_id": call_id(part.id), "content": part.content})
            pictures.extend(part.images)
    _add_user(messages, [part for part in message.parts if isinstance(part, Text | Image)])


def _add_user(messages: list[dict[str, Any]], parts: list[Any]) -> None:
    """What the user says, in one message with what stands before it, as text where it is only text."""
    if not parts:
        return
    content: Any = [_part(part) for part in parts]
    if messages and messages[-1]["role"] == "user":
        content = [*_listed(messages.pop()["content"]), *content]
    if all(part["type"] == "text" for part in content):
        content = "\n\n".join(part["text"] for part in content)
    messages.append({"role": "user", "content": content})


def _listed(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": sendable(part)}}


def _assistant(message: Message) -> dict[str, Any] | None:
    """None for a message of which nothing can be told here: another vendor's thoughts."""
    calls = [part for part in message.parts if isinstance(part, ToolUse)]
    # Thoughts that a chat provider had go back to it: some need them as long as its calls go on.
    thoughts = [part.text for part in message.parts if isinstance(part, Thinking) and part.seal == seal.PLAIN]
    if not (calls or message.text):
        return None
    answer: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if thoughts:
        answer["reasoning_content"] = "".join(thoughts)
    if calls:
        answer["tool_calls"] = [
            {
                "id": call_id(call.id),
                "type": "function",
                "function": {"name": tool_name(call.name), "arguments": call.arguments or "{}"},
            }
            for call in calls
        ]
    return answer


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool_name(tool.name), "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": {**function, "strict": True} if tool.strict else function}


def _choice(request: ChatRequest) -> dict[str, Any]:
    choice, body = request.tool_choice, dict[str, Any]()
    if choice.mode == "named":
        body["tool_choice"] = {"type": "function", "function": {"name": tool_name(choice.name or "")}}
    elif choice.mode != "auto":
        body["tool_choice"] = choice.mode
    if request.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = request.parallel_tool_calls
    return body


def _numbers(request: ChatRequest) -> dict[str, Any]:
    sampling, openais = request.sampling, bool(_OPENAIS.match(request.model))
    found: dict[str, Any] = {
        "max_completion_tokens" if openais else "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
        "presence_penalty": sampling.presence_penalty or None,
        "frequency_penalty": sampling.frequency_penalty or None,
        "reasoning_effort": _EFFORTS.get(request.effort or "", request.effort),
        "prompt_cache_key": request.cache_key if openais else None,
    }
    return {name: value for name, value in found.items() if value is not None}
