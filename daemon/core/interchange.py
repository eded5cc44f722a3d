"""Traces in the forms that other programs read and write. Pure.

Three forms, a JSON object a line: ``records`` (envelopes of the published protocol), ``openai`` (``{"messages": […]}``,
as fine-tuning files have them) and ``atif`` (Agent Trajectory Interchange Format, one trajectory). Whatever is imported
becomes envelopes first; each answer of a conversation is a record of its own, so that its turns make a session.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from daemon.core.errors import UsageError
from daemon.core.records import Image, Message, Text, Thinking, ToolResult, ToolUse
from daemon.core.rows import RecordRow, SessionRow

Form = Literal["records", "openai", "atif"]
ATIF: Final = "ATIF-v1.6"


# -- in ---------------------------------------------------------------------------------------------


def envelopes(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What to send for one line of any form. Raises UsageError for a line of none."""
    if "request_type" in line:
        yield dict(line)
    elif isinstance(line.get("messages"), list):
        yield from _answers(line["messages"], {name: line[name] for name in ("model", "tools") if name in line})
    elif str(line.get("schema_version", "")).startswith("ATIF-") and isinstance(line.get("steps"), list):
        agent = line.get("agent")
        model = agent.get("model_name") if isinstance(agent, dict) else None
        session = line.get("session_id")
        extra: dict[str, Any] = {"model": model} if isinstance(model, str) else {}
        extra |= {"metadata": {"session_id": session}} if isinstance(session, str) else {}
        yield from _answers(list(_of_steps(line["steps"])), extra)
    else:
        raise UsageError(
            f"a line with {', '.join(map(repr, list(line)[:5])) or 'nothing'} is of no known form",
            hint="an envelope with request_type, an object with messages, or an ATIF trajectory",
        )


def _answers(messages: Sequence[Any], extra: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One envelope an assistant message: all before it is its request."""
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise UsageError(f"messages[{number}] is {type(message).__name__}, not an object")
        if message.get("role") != "assistant" or number == 0:
            continue
        payload = {
            **extra,
            "messages": list(messages[:number]),
            "response": {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]},
        }
        digest = hashlib.sha256(json.dumps(payload, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
        yield {"agent_record_id": f"imp_{digest[:32]}", "request_type": "inference", "payload": payload}


def _of_steps(steps: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The messages behind a trajectory's steps: what tools returned stands in the step that called them."""
    for number, step in enumerate(steps):
        if not isinstance(step, dict) or step.get("source") not in ("user", "system", "agent"):
            raise UsageError(f"steps[{number}] has no source", hint="user, system or agent")
        if step["source"] != "agent":
            yield {"role": step["source"], "content": _plain(step.get("message"))}
            continue
        calls = [_call(call) for call in step.get("tool_calls") or () if isinstance(call, dict)]
        yield {"role": "assistant", "content": _plain(step.get("message"))} | ({"tool_calls": calls} if calls else {})
        observed = step.get("observation")
        for result in (observed.get("results") if isinstance(observed, dict) else None) or ():
            if isinstance(result, dict):
                id = result.get("source_call_id")
                yield {"role": "tool", "tool_call_id": str(id or ""), "content": _plain(result.get("content"))}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call.get("arguments")
    function = {
        "name": str(call.get("function_name", "")),
        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
    }
    return {"id": str(call.get("tool_call_id", "")), "type": "function", "function": function}


def _plain(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


# -- out --------------------------------------------------------------------------------------------


def openai(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """A conversation as OpenAI's messages. Thinking is left out, as agents do."""
    said: list[dict[str, Any]] = []
    for message in messages:
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        said += [{"role": "tool", "tool_call_id": one.id, "content": one.content} for one in results]
        calls = [part for part in message.parts if isinstance(part, ToolUse)]
        content = _content(message)
        if not content and not calls and results:
            continue
        turn: dict[str, Any] = {"role": message.role, "content": content or (None if calls else "")}
        if calls:
            turn["tool_calls"] = [
                {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
                for one in calls
            ]
        said.append(turn)
    return said


def _content(message: Message) -> object:
    """Text alone, or with where images were; they are named, never inlined."""
    if not any(isinstance(part, Image) for part in message.parts):
        return message.text
    parts = [part for part in message.parts if isinstance(part, Text | Image)]
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "text", "text": f"[image {part.media_type} {part.source}]"}
        for part in parts
    ]


def atif(session: SessionRow, said: Sequence[tuple[Message, RecordRow | None]]) -> dict[str, Any]:
    """A session as one trajectory; answers have the record that they came from beside them."""
    steps: list[dict[str, Any]] = []
    for message, record in said:
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if results and steps:
            observed = steps[-1].setdefault("observation", {"results": []})
            observed["results"] += [{"source_call_id": one.id, "content": one.content} for one in results]
        if message.role != "tool" and (message.text or message.role == "assistant"):
            steps.append(_step(len(steps) + 1, message, record))
    return {
        "schema_version": ATIF,
        "session_id": session.id,
        "agent": {"name": session.agent or "unknown", "version": "unknown"},
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": session.prompt_tokens,
            "total_completion_tokens": session.completion_tokens,
            "total_steps": len(steps),
        }
        | ({} if session.cost_usd is None else {"total_cost_usd": session.cost_usd}),
    }


def _step(number: int, message: Message, record: RecordRow | None) -> dict[str, Any]:
    step: dict[str, Any] = {
        "step_id": number,
        "source": "agent" if message.role == "assistant" else "system" if message.role == "system" else "user",
        "message": message.text,
    }
    if thinking := "".join(part.text for part in message.parts if isinstance(part, Thinking)):
        step["reasoning_content"] = thinking
    if calls := [part for part in message.parts if isinstance(part, ToolUse)]:
        step["tool_calls"] = [
            {"tool_call_id": one.id, "function_name": one.name, "arguments": _arguments(one.arguments)} for one in calls
        ]
    if record is not None:
        moment = datetime.fromtimestamp(record.started_ns / 1e9, UTC)
        step |= {
            "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "model_name": record.model or record.model_asked,
            "metrics": {
                "prompt_tokens": record.prompt_tokens,
                "completion_tokens": record.completion_tokens,
                "cached_tokens": record.cached_tokens,
            }
            | ({} if record.cost_usd is None else {"cost_usd": record.cost_usd}),
            "extra": {"agent_record_id": record.receipt},
        }
    return step


def _arguments(text: str) -> object:
    """ATIF wants an object; what a model wrote that is none is kept as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"arguments": text}
