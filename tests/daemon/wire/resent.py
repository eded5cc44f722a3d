"""Puts a provider's answer back together from what an agent sent of it in its next request."""

import json
from typing import Any


def stream_of(message: Any) -> bytes:
    """The SSE answer behind an assistant message, with the spaces that a provider writes and agents do not keep."""
    if isinstance(message, list):
        return _responses(message)
    if isinstance(message.get("content"), list):
        return _messages(message["content"])
    return _chat(message)


def _chat(message: dict[str, Any]) -> bytes:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if message.get("content"):
        deltas.append({"content": message["content"].strip() + " "})
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        loose = json.dumps(json.loads(function["arguments"]), indent=1)
        start = {"name": function["name"], "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": start}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": loose}}]})
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def _messages(blocks: list[dict[str, Any]]) -> bytes:
    events: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        kind = block["type"]
        if kind == "tool_use":
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"], indent=1)}
        else:
            field = "thinking" if kind == "thinking" else "text"
            start = {"type": kind, field: ""}
            delta = {"type": f"{field}_delta", field: block[field]}
        start.pop("cache_control", None)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def _responses(items: list[dict[str, Any]]) -> bytes:
    """As a stream of which only deltas arrive for the words, and whole items for the rest."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "resp_1", "output": []}}]
    for index, item in enumerate(items):
        place = {"output_index": index}
        if item.get("role") == "assistant":
            text = "".join(part["text"] for part in item["content"])
            events.append({"type": "response.output_item.added", **place, "item": {**item, "content": []}})
            events.append({"type": "response.output_text.delta", **place, "content_index": 0, "delta": text + " "})
        else:
            events.append({"type": "response.output_item.done", **place, "item": item})
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def wire_bytes(body: Any) -> bytes:
    """A body as JavaScript agents write it."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
