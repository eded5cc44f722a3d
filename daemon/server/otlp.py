"""An exchange as an OpenTelemetry span in OTLP's JSON: names of the GenAI conventions (`gen_ai.*`).

Pure. What people and models said is no part of a span; `said` adds it, and only where it was asked for.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from daemon.core.records import Appended, End, Exchange, Image, Message, Text, Thinking, ToolResult, ToolUse
from daemon.core.version import __version__

#: Version, trace id, parent's span id, flags (W3C Trace Context).
_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_SAMPLED: Final = 1
_CLIENT: Final = 3
_ERROR: Final = 2
_NAME_MOST: Final = 256

Span = dict[str, Any]
#: Text without its secrets.
Clean = Callable[[str], str]


def parent(traceparent: str | None) -> tuple[str, str | None, bool]:
    """(trace id, the parent's span id, whether it is wanted) for what came along; a new trace for none or nonsense."""
    match = _TRACEPARENT.fullmatch((traceparent or "").strip())
    if match is None:
        return secrets.token_hex(16), None, True
    trace, span, flags, _ = match.groups()
    return trace, span, bool(int(flags, 16) & _SAMPLED)


def span(exchange: Exchange, appended: Appended, provider: str, clean: Clean) -> Span | None:
    """A recorded exchange's span; None where its parent is not sampled. ``provider``: as the conventions call it."""
    trace, above, wanted = parent(exchange.traceparent)
    if not wanted:
        return None
    operation, model = _operation(exchange.path), clean(exchange.model_asked[:_NAME_MOST])
    failed = exchange.end is not End.OK
    made: Span = {
        "traceId": trace,
        "spanId": secrets.token_hex(8),
        "name": f"{operation} {model}".rstrip(),
        "kind": _CLIENT,
        "startTimeUnixNano": str(exchange.started_ns),
        "endTimeUnixNano": str(exchange.started_ns + max(0, exchange.duration_us) * 1000),
        "attributes": _attributes(_facts(exchange, appended, clean) | {
            "gen_ai.operation.name": operation, "gen_ai.provider.name": provider, "gen_ai.request.model": model or None,
        }),
        "status": {"code": _ERROR, "message": clean(exchange.error or "")} if failed else {},
    }  # fmt: skip
    if above is not None:
        made["parentSpanId"] = above
    return made


def _operation(path: str) -> str:
    if path.endswith("/embeddings"):
        return "embeddings"
    return "text_completion" if path.endswith("/completions") and "/chat/" not in path else "chat"


def _facts(exchange: Exchange, appended: Appended, clean: Clean) -> dict[str, object]:
    usage = appended.usage
    first = exchange.first_byte_us
    error = str(exchange.status) if exchange.end is End.ERROR else exchange.end.value
    return {
        "gen_ai.request.stream": exchange.stream or None,
        "gen_ai.response.model": None if appended.model is None else clean(appended.model[:_NAME_MOST]),
        "gen_ai.response.finish_reasons": [appended.stop_reason] if appended.stop_reason else None,
        "gen_ai.response.time_to_first_chunk": first / 1e6 if first is not None and exchange.stream else None,
        "gen_ai.usage.input_tokens": usage.prompt or None,
        "gen_ai.usage.output_tokens": usage.completion or None,
        "gen_ai.usage.cache_read.input_tokens": usage.cached or None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning or None,
        "gen_ai.conversation.id": appended.session,
        "gen_ai.agent.name": None if appended.agent is None else clean(appended.agent),
        "error.type": None if exchange.end is End.OK else error,
        "http.response.status_code": exchange.status or None,
        "reef.receipt": exchange.receipt,
        "reef.scenario": exchange.scenario,
        "reef.release_id": appended.release_id,
        "reef.engine": exchange.engine,
        "reef.kind": appended.kind.value,
    }


def said(messages: Iterable[Message], answer: Message | None, stop_reason: str | None) -> list[dict[str, Any]]:
    """Attributes with what was said, as the conventions' JSON."""
    told = [{"role": message.role, "parts": _parts(message)} for message in messages]
    facts: dict[str, object] = {"gen_ai.input.messages": json.dumps(told, ensure_ascii=False)}
    if answer is not None:
        reply = {"role": answer.role, "parts": _parts(answer), "finish_reason": stop_reason or "stop"}
        facts["gen_ai.output.messages"] = json.dumps([reply], ensure_ascii=False)
    return _attributes(facts)


def _parts(message: Message) -> list[dict[str, object]]:
    return [_part(part) for part in message.parts]


def _part(part: Text | Thinking | Image | ToolUse | ToolResult) -> dict[str, object]:
    match part:
        case Text(text):
            return {"type": "text", "content": text}
        case Thinking(text):
            return {"type": "reasoning", "content": text}
        case ToolUse(id, name, arguments):
            return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}
        case ToolResult(id, content, _):
            return {"type": "tool_call_response", "id": id, "response": content}
        case Image(media_type, _):
            return {"type": "image", "mime_type": media_type}


def request(spans: Iterable[Span]) -> dict[str, Any]:
    """The body of ``POST /v1/traces``."""
    resource = _attributes({"service.name": "reef", "service.version": __version__})
    scope = {"name": "reef", "version": __version__}
    return {
        "resourceSpans": [
            {"resource": {"attributes": resource}, "scopeSpans": [{"scope": scope, "spans": list(spans)}]}
        ]
    }


def _attributes(facts: Mapping[str, object]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in facts.items() if value is not None]


def _value(value: object) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # 64 bits do not fit JSON's numbers
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}
