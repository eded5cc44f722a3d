"""Writing a request as messages, for a provider that speaks only that.

Anthropic's caches need marks: at the end of the system prompt (the tools are before it) and of the conversation, two of
the four that are allowed. Thoughts go back only with Anthropic's own signature.
"""

import re
from typing import Any, Final

from daemon.core.records import ChatRequest, Image, Part, Text, Thinking, Tool, ToolChoice, ToolResult, ToolUse
from daemon.wire import jsontext, seal
from daemon.wire.chat_writer import leading, sendable
from daemon.wire.reader import call_id, tool_name

#: The field must be there. What Claude Code asks for.
_MAX_TOKENS: Final = 32_000
_CACHED: Final = {"cache_control": {"type": "ephemeral"}}
_BUDGETS: Final = {"minimal": 1024, "low": 2048, "medium": 8192}
_LARGEST_BUDGET: Final = 16_384
_SMALLEST_BUDGET: Final = 1024
#: Claude models that choose by themselves how long they think, and are told an effort.
_ADAPTIVE: Final = re.compile(r"claude-(?:[a-z]+-)?(?:4[-.][6-9]|[5-9])")
_EFFORTS: Final = {"minimal": "low", "xhigh": "high"}
_CHOICES: Final = {"auto": "auto", "none": "none", "required": "any", "named": "tool"}


def write(request: ChatRequest) -> bytes:
    """Raises BadRequest for what cannot be told in this dialect."""
    system, rest = leading(request.messages)
    messages: list[dict[str, Any]] = []
    for message in rest:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = [block for part in message.parts if (block := _block(part)) is not None]
        if blocks and messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})
    _mark_last(messages)
    limit = request.sampling.max_tokens or _MAX_TOKENS
    body: dict[str, Any] = {"model": request.model, "max_tokens": limit, "messages": messages}
    if system:
        body["system"] = [{"type": "text", "text": system, **_CACHED}]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tool_choice"] = _choice(request.tool_choice, request.parallel_tool_calls)
    thinking = _thinking(request, messages, limit)
    body |= thinking or _sampling(request)
    if request.sampling.stop:
        body["stop_sequences"] = list(request.sampling.stop)
    if request.response_schema:
        form = {"type": "json_schema", "schema": dict(request.response_schema)}
        body["output_config"] = {**body.get("output_config", {}), "format": form}
    if request.stream:
        body["stream"] = True
    return jsontext.encode(body)


def _mark_last(messages: list[dict[str, Any]]) -> None:
    """A cache mark on the conversation's last block; thoughts cannot have one."""
    if messages and messages[-1]["content"][-1]["type"] not in ("thinking", "redacted_thinking"):
        messages[-1]["content"][-1] = {**messages[-1]["content"][-1], **_CACHED}


def _block(part: Part) -> dict[str, Any] | None:
    match part:
        case Text(text):
            return {"type": "text", "text": text} if text.strip() else None  # blank blocks are refused
        case Image():
            return _image(part)
        case Thinking(text, sealed):
            return _thought(text, sealed)
        case ToolUse(id, name, written):
            value = jsontext.arguments(written)
            given = {"invalid_json": written} if value is None else value
            return {"type": "tool_use", "id": call_id(id), "name": tool_name(name), "input": given}
        case ToolResult(id, content, is_error, images):
            block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id(id), "content": content}
            if images:
                said = [{"type": "text", "text": content}] if content.strip() else []
                block["content"] = [*said, *(_image(image) for image in images)]
            return {**block, "is_error": True} if is_error else block


def _image(image: Image) -> dict[str, Any]:
    url = sendable(image)
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    data = url.partition(",")[2]
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}


def _thought(text: str, sealed: str) -> dict[str, Any] | None:
    if (signature := seal.value(sealed, seal.SIGNED)) is not None:
        return {"type": "thinking", "thinking": text, "signature": signature}
    if (data := seal.value(sealed, seal.HIDDEN)) is not None:
        return {"type": "redacted_thinking", "data": data}
    return None


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool_name(tool.name),
        "description": tool.description,
        "input_schema": {"type": "object", **tool.schema},
    }


def _choice(choice: ToolChoice, parallel: bool | None) -> dict[str, Any]:
    chosen: dict[str, Any] = {"type": _CHOICES[choice.mode]}
    if choice.mode == "named":
        chosen["name"] = tool_name(choice.name or "")
    if parallel is not None and choice.mode != "none":
        chosen["disable_parallel_tool_use"] = not parallel
    return chosen


def _thinking(request: ChatRequest, messages: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """Empty where the model is not to think, or may not: a forced call, calls under way whose thoughts are not here."""
    effort = request.effort
    if effort in (None, "none") or request.tool_choice.mode in ("required", "named") or _unsigned(messages):
        return {}
    if _ADAPTIVE.search(request.model):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": _EFFORTS.get(effort, effort)}}
    budget = min(_BUDGETS.get(effort, _LARGEST_BUDGET), limit - 1)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= _SMALLEST_BUDGET else {}


def _unsigned(messages: list[dict[str, Any]]) -> bool:
    """Whether calls are under way in an answer that does not begin with a thought."""
    if len(messages) < 2 or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return messages[-2]["content"][0]["type"] not in ("thinking", "redacted_thinking")


def _sampling(request: ChatRequest) -> dict[str, Any]:
    """Not for a model that thinks, which refuses them. A temperature is at most 1 here."""
    sampling = request.sampling
    found = {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": sampling.top_k}
    if sampling.temperature is not None:
        found = {**found, "temperature": min(sampling.temperature, 1.0), "top_p": None}  # one of the two only
    return {name: value for name, value in found.items() if value is not None}
