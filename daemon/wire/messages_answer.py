"""Putting a messages answer together from a body or from events, as the agent will send it back.

A tool call's ``input`` is an object where the model's JSON is one, else the text as written: nothing is lost, and a
call that was cut off can be told from a whole one.
"""

from typing import Any, Final

from daemon.core.records import Usage
from daemon.wire import jsontext
from daemon.wire.answer import MOST_TOKENS, Answer, cost_in, problem_in

#: Delta type → (its field, the block's field) for deltas that add text.
_ADDED: Final = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}


class MessagesAssembler:
    def __init__(self) -> None:
        self._answer = Answer()
        self._blocks: dict[object, dict[str, Any]] = {}
        self._written: dict[object, str] = {}
        self._usage: dict[str, int] = {}
        self._cost: float | None = None

    def whole(self, body: dict[str, Any]) -> None:
        if problem := problem_in("", body):
            self._answer.problem = problem
            return
        self._start(body)
        content = body.get("content")
        for index, block in enumerate(content if isinstance(content, list) else []):
            if isinstance(block, dict):
                self._blocks[index] = block

    def event(self, name: str, data: dict[str, Any]) -> None:
        kind = data.get("type") or name
        if kind == "message_start":
            message = data.get("message")
            self._start(message if isinstance(message, dict) else {})
        elif kind == "content_block_start":
            block = data.get("content_block")
            self._blocks[_index(data)] = dict(block) if isinstance(block, dict) else {"type": "text", "text": ""}
        elif kind == "content_block_delta":
            delta = data.get("delta")
            self._delta(_index(data), delta if isinstance(delta, dict) else {})
        elif kind == "message_delta":
            delta = data.get("delta")
            self._start({**(delta if isinstance(delta, dict) else {}), "usage": data.get("usage")})
        elif problem := problem_in(name, data):
            self._answer.problem = problem

    def adds(self, data: dict[str, Any], text: str) -> bool:
        delta = data.get("delta")
        if data.get("type") != "content_block_delta" or not isinstance(delta, dict):
            return False
        kind = str(delta.get("type"))
        field = "partial_json" if kind == "input_json_delta" else _ADDED.get(kind, ("",))[0]
        return delta.get(field) == text

    def _start(self, message: dict[str, Any]) -> None:
        if isinstance(model := message.get("model"), str):
            self._answer.model = model
        if isinstance(reason := message.get("stop_reason"), str):
            self._answer.stop_reason = reason
        usage = message.get("usage")
        for name, value in usage.items() if isinstance(usage, dict) else ():
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS:
                self._usage[name] = value
        if isinstance(usage, dict) and (cost := cost_in(usage)) is not None:
            self._cost = cost

    def _delta(self, index: object, delta: dict[str, Any]) -> None:
        kind = str(delta.get("type"))
        block = self._blocks.setdefault(index, {"type": "tool_use" if kind == "input_json_delta" else "text"})
        if kind == "input_json_delta":
            written = delta.get("partial_json")
            self._written[index] = self._written.get(index, "") + (written if isinstance(written, str) else "")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
        elif kind in _ADDED:
            source, target = _ADDED[kind]
            piece, before = delta.get(source), block.get(target)
            block[target] = (before if isinstance(before, str) else "") + (piece if isinstance(piece, str) else "")

    def answer(self) -> Answer:
        content: list[dict[str, Any]] = []
        for index, block in self._blocks.items():
            written = self._written.get(index, "")
            if written.strip():
                value = jsontext.arguments(written)
                block = {**block, "input": written if value is None else value}
            content.append(block)
        if content:
            self._answer.message = {"role": "assistant", "content": content}
        counts = self._usage
        cached, kept = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
        self._answer.usage = Usage(
            prompt=counts.get("input_tokens", 0) + cached + kept,
            completion=counts.get("output_tokens", 0),
            cached=cached,
            written=kept,
            cost=self._cost,
        )
        return self._answer


def _index(data: dict[str, Any]) -> int | None:
    index = data.get("index")
    return index if isinstance(index, int) else None
