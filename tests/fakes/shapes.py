"""The dialects as the vendors' own servers write them, made without any of the product's code."""

import json
from typing import Any

created = 1_700_000_000
Calls = list[tuple[str, str]]


def error_type(status: int) -> str:
    kinds = {401: "authentication_error", 429: "rate_limit_error", 503: "overloaded_error", 529: "overloaded_error"}
    return kinds.get(status, "api_error" if status >= 500 else "invalid_request_error")


def written(data: dict[str, Any]) -> bytes:
    """As vendors write it: letters of all languages as they are, so that chunks cut them."""
    return json.dumps(data, ensure_ascii=False).encode()


def words(text: str) -> list[str]:
    return text.replace(" ", "\0 ").split("\0") if text else []


def offered(name: str, tools: list[tuple[str, dict[str, Any]]]) -> str:
    names = [tool for tool, _ in tools]
    same = [tool for tool in names if tool.lower() == name.lower()]
    fitting = [tool for tool, schema in tools if name == "bash" and "command" in schema.get("properties", {})]
    return (same or fitting or [name])[0]


#: How agents begin a message of their own in the person's name, after an answer that broke off (Qwen Code, Hermes).
_RESUMING = ("The connection dropped mid-response.", "[System: The previous response was cut off")


def _typed(message: dict[str, Any]) -> bool:
    """Whether a person wrote it."""
    content = message.get("content")
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])
    return bool(message["role"] == "user" and not text.startswith(_RESUMING))


PING = b'event: ping\ndata: {"type": "ping"}\n\n'


class Chat:
    """chat.completions."""

    def __init__(self, asked: dict[str, Any], size: int) -> None:
        self._asked = asked
        self._prompt = size // 4
        serial = len(asked.get("messages", []))
        self._head = {"id": f"chatcmpl-fake{serial}", "created": created, "model": asked.get("model")}
        self._serial = serial

    def tool(self, name: str) -> str:
        functions = [tool["function"] for tool in self._asked.get("tools") or [] if "function" in tool]
        return offered(name, [(one["name"], one.get("parameters") or {}) for one in functions])

    def answered(self) -> int:
        answers = 0
        for message in self._asked.get("messages", []):
            answers = 0 if _typed(message) else answers + (message["role"] == "assistant")
        return answers

    def _usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self._prompt,
            "completion_tokens": 42,
            "total_tokens": self._prompt + 42,
            "prompt_tokens_details": {"cached_tokens": 8},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }

    def _calls(self, calls: Calls) -> list[dict[str, Any]]:
        return [
            {"id": f"call_{self._serial}_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, (name, arguments) in enumerate(calls)
        ]

    def body(self, text: str, calls: Calls, thinking: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
        if thinking:
            message["reasoning_content"] = thinking
        if calls:
            message["tool_calls"] = self._calls(calls)
        reason = "tool_calls" if calls else "stop"
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        return {"object": "chat.completion", **self._head, "choices": [choice], "usage": self._usage()}

    def events(self, text: str, calls: Calls, thinking: str) -> list[bytes]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
        deltas += [{"reasoning_content": word} for word in words(thinking)]
        deltas += [{"content": word} for word in words(text)]
        for i, call in enumerate(self._calls(calls)):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            deltas.append({"tool_calls": [{"index": i, **call, "function": {"name": name, "arguments": ""}}]})
            half = len(arguments) // 2
            for piece in (arguments[:half], arguments[half:]):
                deltas.append({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
        events = [self._chunk(delta, None) for delta in deltas]
        events.append(self._chunk({}, "tool_calls" if calls else "stop"))
        if (self._asked.get("stream_options") or {}).get("include_usage"):
            events.append(self._event({**self._chunk_head(), "choices": [], "usage": self._usage()}))
        return [*events, b"data: [DONE]\n\n"]

    def _chunk_head(self) -> dict[str, Any]:
        return {"object": "chat.completion.chunk", **self._head}

    def _chunk(self, delta: dict[str, Any], reason: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return self._event({**self._chunk_head(), "choices": [choice]})

    def _event(self, data: dict[str, Any]) -> bytes:
        return b"data: " + written(data) + b"\n\n"

    def error(self, status: int) -> dict[str, Any]:
        error = {"message": f"scripted {status}", "type": error_type(status), "param": None, "code": None}
        return {"error": error}

    def error_event(self) -> bytes:
        return self._event(self.error(500))


class Messages:
    """messages."""

    def __init__(self, asked: dict[str, Any], size: int) -> None:
        self._asked = asked
        self._prompt = size // 4
        self._serial = len(asked.get("messages", []))

    def tool(self, name: str) -> str:
        tools = self._asked.get("tools") or []
        return offered(name, [(one["name"], one["input_schema"]) for one in tools if "input_schema" in one])

    def answered(self) -> int:
        answers = 0
        for message in self._asked.get("messages", []):
            content = message["content"]
            blocks = content if isinstance(content, list) else []
            results = any(block.get("type") == "tool_result" for block in blocks)
            if message["role"] == "user" and not results:
                answers = 0
            answers += message["role"] == "assistant"
        return answers

    def _usage(self, output: int) -> dict[str, Any]:
        return {
            "input_tokens": self._prompt,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 8,
            "output_tokens": output,
        }

    def _message(self, content: list[dict[str, Any]], reason: str | None, output: int) -> dict[str, Any]:
        return {
            "id": f"msg_fake{self._serial}",
            "type": "message",
            "role": "assistant",
            "model": self._asked.get("model"),
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": self._usage(output),
        }

    def body(self, text: str, calls: Calls, thinking: str) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if thinking:
            content.append({"type": "thinking", "thinking": thinking, "signature": "c2lnbmVk"})
        if text:
            content.append({"type": "text", "text": text})
        for i, (name, arguments) in enumerate(calls):
            identity = f"toolu_{self._serial}_{i}"
            content.append({"type": "tool_use", "id": identity, "name": name, "input": json.loads(arguments)})
        return self._message(content, "tool_use" if calls else "end_turn", 42)

    def events(self, text: str, calls: Calls, thinking: str) -> list[bytes]:
        blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        if thinking:
            deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": word} for word in words(thinking)]
            deltas.append({"type": "signature_delta", "signature": "c2lnbmVk"})
            blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
        if text:
            spoken = [{"type": "text_delta", "text": word} for word in words(text)]
            blocks.append(({"type": "text", "text": ""}, spoken))
        for i, (name, arguments) in enumerate(calls):
            half = len(arguments) // 2
            pieces = ("", arguments[:half], arguments[half:])
            block = {"type": "tool_use", "id": f"toolu_{self._serial}_{i}", "name": name, "input": {}}
            blocks.append((block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]))
        events = [
            self._event({"type": "message_start", "message": self._message([], None, 1)}),
            self._event({"type": "ping"}),
        ]
        for index, (block, deltas) in enumerate(blocks):
            events.append(self._event({"type": "content_block_start", "index": index, "content_block": block}))
            for delta in deltas:
                events.append(self._event({"type": "content_block_delta", "index": index, "delta": delta}))
            events.append(self._event({"type": "content_block_stop", "index": index}))
        delta = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        events.append(self._event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 42}}))
        return [*events, self._event({"type": "message_stop"})]

    def _event(self, data: dict[str, Any]) -> bytes:
        return f"event: {data['type']}\n".encode() + b"data: " + written(data) + b"\n\n"

    def error(self, status: int) -> dict[str, Any]:
        error = {"type": error_type(status), "message": f"scripted {status}"}
        return {"type": "error", "error": error, "request_id": "req_fake"}

    def error_event(self) -> bytes:
        return self._event(self.error(529))
