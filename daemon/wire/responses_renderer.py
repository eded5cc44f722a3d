"""Writing Responses answers as OpenAI does: each item opened, filled and closed in order, every event numbered.

Codex drops a delta whose item was not announced, and takes an item only once it is done; OpenAI's client refuses an
event of another response's id. All of it counts.
"""

from typing import Any, Final, Literal

from daemon.core.generation import (
    EngineEvent,
    Finished,
    RefusalDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolArguments,
    ToolStart,
)
from daemon.core.records import ChatRequest, Usage
from daemon.wire import jsontext
from daemon.wire.errors import responses_error
from daemon.wire.free_text import FreeText

_Words = Literal["output_text", "refusal"]
#: The field of a part's text, as its kind.
_FIELD: Final[dict[_Words, str]] = {"output_text": "text", "refusal": "refusal"}
_INCOMPLETE: Final = {"length": "max_output_tokens", "refusal": "content_filter"}


class ResponsesRenderer:
    """One answer. Also keeps all of it, for the body that is not streamed."""

    def __init__(self, request: ChatRequest, receipt: str, model: str, created: int) -> None:
        self._serial = receipt.removeprefix("rec_")
        self._tools = {tool.name: tool for tool in request.tools}
        self._head: dict[str, Any] = {
            "id": f"resp_{self._serial}",
            "object": "response",
            "created_at": created,
            "model": model,
            **_echo(request),
        }
        self._number = 0
        self._output: list[dict[str, Any]] = []
        #: The item that is open (always the last one), and the text of its part that is.
        self._open: Literal["message", "reasoning", "call"] | None = None
        self._words: _Words = "output_text"
        self._written: list[str] = []
        self._free = FreeText()
        self._refused = False
        self._end: Finished | None = None

    def event(self, event: EngineEvent) -> bytes:
        match event:
            case Started(prompt, cached):
                self._usage = Usage(prompt=prompt, cached=cached)
                opening = self._response("in_progress")
                return self._sse("response.created", response=opening) + self._sse(
                    "response.in_progress", response=opening
                )
            case TextDelta(text):
                return self._said(jsontext.encodable(text), "output_text")
            case RefusalDelta(text):
                self._refused = True
                return self._said(jsontext.encodable(text), "refusal")
            case ThinkingDelta(text):
                return self._thought(jsontext.encodable(text))
            case ThinkingEnd(seal):
                return self._sealed(seal)
            case ToolStart(_, id, name):
                return self._close() + self._call(id, name)
            case ToolArguments(_, text):
                return self._arguments(jsontext.encodable(text))
            case Finished():
                self._end = event
                return self._close()

    # -- words ----------------------------------------------------------------------------------------

    def _said(self, text: str, kind: _Words) -> bytes:
        if not text:
            return b""
        before = b""
        if self._open != "message":
            before = self._close() + self._start("message", "msg", {"role": "assistant", "content": []})
            before += self._part_start(kind)
        elif kind != self._words:
            before = self._part_end() + self._part_start(kind)
        self._written.append(text)
        logprobs: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
        return before + self._sse(f"response.{kind}.delta", **self._place(), delta=text, **logprobs)

    def _place(self) -> dict[str, Any]:
        return {**self._where(), "content_index": len(self._output[-1]["content"])}

    def _part_start(self, kind: _Words) -> bytes:
        self._words, self._written = kind, []
        return self._sse("response.content_part.added", **self._place(), part=_part(kind, ""))

    def _part_end(self) -> bytes:
        text, kind = "".join(self._written), self._words
        part = _part(kind, text)
        logprobs: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
        done = self._sse(f"response.{kind}.done", **self._place(), **{_FIELD[kind]: text}, **logprobs)
        done += self._sse("response.content_part.done", **self._place(), part=part)
        self._output[-1]["content"].append(part)
        return done

    # -- thoughts -------------------------------------------------------------------------------------

    def _thought(self, text: str) -> bytes:
        if not text:
            return b""
        before = b""
        if self._open != "reasoning":
            before = self._close() + self._start("reasoning", "rs", {"summary": []})
            before += self._sse("response.reasoning_summary_part.added", **self._summary(), part=_summary_part(""))
        self._written.append(text)
        return before + self._sse("response.reasoning_summary_text.delta", **self._summary(), delta=text)

    def _summary(self) -> dict[str, Any]:
        return {**self._where(), "summary_index": 0}

    def _sealed(self, seal: str) -> bytes:
        if self._open != "reasoning":
            if not seal:
                return b""
            return self._close() + self._start("reasoning", "rs", {"summary": []}) + self._thought_end(seal)
        return self._thought_end(seal)

    def _thought_end(self, seal: str) -> bytes:
        done = b""
        if text := "".join(self._written):
            done += self._sse("response.reasoning_summary_text.done", **self._summary(), text=text)
            done += self._sse("response.reasoning_summary_part.done", **self._summary(), part=_summary_part(text))
            self._output[-1]["summary"].append(_summary_part(text))
        if seal:
            self._output[-1]["encrypted_content"] = seal
        return done + self._done()

    # -- calls ----------------------------------------------------------------------------------------

    def _call(self, id: str, name: str) -> bytes:
        tool = self._tools.get(name)
        named: dict[str, Any] = {"call_id": id, "name": name}
        if tool is not None and tool.namespace:
            named.update(name=name.removeprefix(f"{tool.namespace}__"), namespace=tool.namespace)
        if tool is not None and tool.custom:
            self._free = FreeText()
            return self._start("custom_tool_call", "ctc", {**named, "input": ""})
        return self._start("function_call", "fc", {**named, "arguments": ""})

    def _arguments(self, text: str) -> bytes:
        self._written.append(text)
        if self._output[-1]["type"] == "custom_tool_call":
            self._output[-1]["input"] += (text := jsontext.encodable(self._free.feed(text)))
            return self._sse("response.custom_tool_call_input.delta", **self._where(), delta=text) if text else b""
        return self._sse("response.function_call_arguments.delta", **self._where(), delta=text) if text else b""

    def _call_end(self) -> bytes:
        item, written = self._output[-1], "".join(self._written)
        if item["type"] == "function_call":
            item["arguments"] = written
            done = self._sse("response.function_call_arguments.done", **self._where(), arguments=written)
            return done + self._done()
        value = (jsontext.arguments(written) or {}).get("input")
        whole = value if isinstance(value, str) else written
        rest, item["input"] = whole.removeprefix(item["input"]), whole
        done = self._sse("response.custom_tool_call_input.delta", **self._where(), delta=rest) if rest else b""
        done += self._sse("response.custom_tool_call_input.done", **self._where(), input=item["input"])
        return done + self._done()

    # -- items ----------------------------------------------------------------------------------------

    def _where(self) -> dict[str, Any]:
        return {"item_id": self._output[-1]["id"], "output_index": len(self._output) - 1}

    def _start(self, kind: str, prefix: str, fields: dict[str, Any]) -> bytes:
        id = f"{prefix}_{self._serial}_{len(self._output)}"
        self._output.append({"id": id, "type": kind, "status": "in_progress", **fields})
        self._open = kind if kind in ("message", "reasoning") else "call"  # type: ignore[assignment]  # two of three
        self._written = []
        return self._sse("response.output_item.added", output_index=len(self._output) - 1, item=self._output[-1])

    def _close(self) -> bytes:
        match self._open:
            case "message":
                return self._part_end() + self._done()
            case "reasoning":
                return self._thought_end("")
            case "call":
                return self._call_end()
            case None:
                return b""

    def _done(self) -> bytes:
        self._open, self._written = None, []
        self._output[-1]["status"] = "completed"
        return self._sse("response.output_item.done", output_index=len(self._output) - 1, item=self._output[-1])

    # -- the response ---------------------------------------------------------------------------------

    def keepalive(self) -> bytes:
        return self._sse("keepalive")

    def finish(self) -> bytes:
        response = self._whole()
        return self._sse(f"response.{response['status']}", response=response)

    def error(self, status: int, kind: str, message: str) -> bytes:
        failed = {**self._response("failed"), "error": responses_error(status, kind, message)}
        return self._sse("response.failed", response=failed)

    def body(self) -> bytes:
        return jsontext.encode(self._whole())

    def _whole(self) -> dict[str, Any]:
        assert self._end is not None, "Finished comes before the end"
        reason = None if self._refused else _INCOMPLETE.get(self._end.reason)
        whole = {**self._response("incomplete" if reason else "completed"), "usage": _usage(self._end.usage)}
        return {**whole, "incomplete_details": {"reason": reason}} if reason else whole

    def _response(self, status: str) -> dict[str, Any]:
        # A new list: it is written before more is added.
        return {**self._head, "status": status, "output": [*self._output], "usage": None}

    def _sse(self, kind: str, **fields: Any) -> bytes:
        data = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: " + kind.encode() + b"\ndata: " + jsontext.encode(data) + b"\n\n"


def _part(kind: _Words, text: str) -> dict[str, Any]:
    if kind == "refusal":
        return {"type": kind, "refusal": text}
    return {"type": kind, "text": text, "annotations": [], "logprobs": []}


def _summary_part(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}


def _echo(request: ChatRequest) -> dict[str, Any]:
    """What a response repeats of its request; its tools and instructions the client knows."""
    sampling = request.sampling
    return {
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": sampling.max_tokens,
        "metadata": {},
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": {"effort": request.effort, "summary": None},
        "store": False,
        "temperature": sampling.temperature,
        "text": {"format": {"type": "text"}},
        "tool_choice": request.tool_choice.mode if request.tool_choice.mode != "named" else "required",
        "tools": [],
        "top_p": sampling.top_p,
        "truncation": "disabled",
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    }
