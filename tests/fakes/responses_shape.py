"""The Responses dialect as OpenAI's own servers write it, made without any of the product's code."""

import json
from typing import Any

from tests.fakes.shapes import Calls, created, error_type, offered, words, written


class Responses:
    """responses."""

    def __init__(self, asked: dict[str, Any], size: int) -> None:
        self._asked = asked
        self._prompt = size // 4
        given = asked.get("input", [])
        self._input: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else given
        self._serial = len(self._input)

    def tool(self, name: str) -> str:
        tools = self._asked.get("tools") or []
        return offered(name, [(one["name"], one.get("parameters") or {}) for one in tools if "name" in one])

    def answered(self) -> int:
        """Answers since the last message a person typed: rows of items that a model made."""
        answers, inside = 0, False
        for item in self._input:
            kind = item.get("type", "message")
            if kind == "message" and item["role"] == "user":
                answers, inside = 0, False
            elif kind.endswith("_output") or item.get("role") == "developer":
                inside = False
            elif not inside:
                answers, inside = answers + 1, True
        return answers

    def _items(self, text: str, calls: Calls, thinking: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if thinking:
            summary = [{"type": "summary_text", "text": thinking}]
            sealed = {"encrypted_content": "ZW5jcnlwdGVk"}
            items.append({"id": f"rs_fake{self._serial}", "type": "reasoning", "summary": summary, **sealed})
        if text:
            part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
            items.append({"id": f"msg_fake{self._serial}", "type": "message", "role": "assistant", "content": [part]})
        custom = {one["name"] for one in self._asked.get("tools") or [] if one.get("type") == "custom"}
        for i, (name, arguments) in enumerate(calls):
            call = {"call_id": f"call_{self._serial}_{i}", "name": name}
            if name in custom:
                free = json.loads(arguments)["input"]
                items.append({"id": f"ctc_{self._serial}_{i}", "type": "custom_tool_call", **call, "input": free})
            else:
                items.append({"id": f"fc_{self._serial}_{i}", "type": "function_call", **call, "arguments": arguments})
        return [{**item, "status": "completed"} for item in items]

    def _response(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        usage = {
            "input_tokens": self._prompt,
            "input_tokens_details": {"cached_tokens": 8},
            "output_tokens": 42,
            "output_tokens_details": {"reasoning_tokens": 7},
            "total_tokens": self._prompt + 42,
        }
        return {
            "id": f"resp_fake{self._serial}",
            "object": "response",
            "created_at": created,
            "status": status,
            "model": self._asked.get("model"),
            "output": output,
            "usage": usage if status == "completed" else None,
            "error": None,
            "incomplete_details": None,
            "instructions": self._asked.get("instructions"),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": self._asked.get("tools") or [],
        }

    def body(self, text: str, calls: Calls, thinking: str) -> dict[str, Any]:
        return self._response("completed", self._items(text, calls, thinking))

    def events(self, text: str, calls: Calls, thinking: str) -> list[bytes]:
        items = self._items(text, calls, thinking)
        opening = self._response("in_progress", [])
        data: list[dict[str, Any]] = [
            {"type": "response.created", "response": opening},
            {"type": "response.in_progress", "response": opening},
        ]
        for index, item in enumerate(items):
            data += self._item(index, item)
        data.append({"type": "response.completed", "response": self._response("completed", items)})
        return [self._event({**one, "sequence_number": i}) for i, one in enumerate(data)]

    def _item(self, index: int, item: dict[str, Any]) -> list[dict[str, Any]]:
        place = {"output_index": index, "item_id": item["id"]}
        opened = {**item, "status": "in_progress"}
        if item["type"] == "message":
            text, place = item["content"][0]["text"], {**place, "content_index": 0}
            opened["content"] = []
            inner: list[dict[str, Any]] = [
                {"type": "response.content_part.added", **place, "part": {**item["content"][0], "text": ""}},
                *({"type": "response.output_text.delta", **place, "delta": word} for word in words(text)),
                {"type": "response.output_text.done", **place, "text": text},
                {"type": "response.content_part.done", **place, "part": item["content"][0]},
            ]
        elif item["type"] == "reasoning":
            text, place = item["summary"][0]["text"], {**place, "summary_index": 0}
            opened["summary"] = []
            inner = [
                {"type": "response.reasoning_summary_part.added", **place, "part": {**item["summary"][0], "text": ""}},
                *({"type": "response.reasoning_summary_text.delta", **place, "delta": word} for word in words(text)),
                {"type": "response.reasoning_summary_text.done", **place, "text": text},
                {"type": "response.reasoning_summary_part.done", **place, "part": item["summary"][0]},
            ]
        else:
            field, name = (
                ("input", "custom_tool_call_input") if "input" in item else ("arguments", "function_call_arguments")
            )
            written, opened[field] = item[field], ""
            half = len(written) // 2
            inner = [
                {"type": f"response.{name}.delta", **place, "delta": written[:half]},
                {"type": f"response.{name}.delta", **place, "delta": written[half:]},
                {"type": f"response.{name}.done", **place, field: written},
            ]
        added = {"type": "response.output_item.added", "output_index": index, "item": opened}
        return [added, *inner, {"type": "response.output_item.done", "output_index": index, "item": item}]

    def _event(self, data: dict[str, Any]) -> bytes:
        return f"event: {data['type']}\n".encode() + b"data: " + written(data) + b"\n\n"

    def error(self, status: int) -> dict[str, Any]:
        error = {"message": f"scripted {status}", "type": error_type(status), "param": None, "code": None}
        return {"error": error}

    def error_event(self) -> bytes:
        failed = {**self._response("failed", []), "error": {"code": "server_is_overloaded", "message": "scripted 529"}}
        return self._event({"type": "response.failed", "sequence_number": 9, "response": failed})
