"""Writing chat.completions answers as OpenAI does: the role first, calls by index, usage last where asked for."""

from typing import Any, Final

from daemon.core.generation import (
    EngineEvent,
    Finished,
    FinishReason,
    RefusalDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    TokenLogprob,
    ToolArguments,
    ToolStart,
)
from daemon.core.records import ChatRequest, Usage
from daemon.wire import jsontext
from daemon.wire.errors import openai_error

_REASONS: Final[dict[FinishReason, str]] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "refusal": "content_filter",
}
DONE: Final = b"data: [DONE]\n\n"


class ChatRenderer:
    """One answer. Also keeps all of it, for the body that is not streamed."""

    def __init__(self, request: ChatRequest, receipt: str, model: str, created: int) -> None:
        self._identity = {"id": f"chatcmpl-{receipt.removeprefix('rec_')}", "created": created, "model": model}
        self._usage_asked = request.include_usage
        self._logprobs_asked = request.sampling.logprobs
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._refusals: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._tokens: list[dict[str, Any]] = []
        self._reason: str | None = None
        self._usage = Usage()

    def event(self, event: EngineEvent) -> bytes:
        match event:
            case Started():
                return self._chunk({"role": "assistant", "content": "", "refusal": None})
            case TextDelta(text, tokens):
                return self._text(text, tokens)
            case ThinkingDelta(text):
                return self._beside("reasoning_content", text, self._thoughts)
            case RefusalDelta(text):
                return self._beside("refusal", text, self._refusals)
            case ThinkingEnd():
                return b""  # no field for it here
            case ToolStart(index, id, name):
                call = {"id": id, "type": "function", "function": {"name": name, "arguments": ""}}
                self._calls[index] = call
                return self._chunk({"tool_calls": [{"index": index, **call}]})
            case ToolArguments(index, text):
                text = jsontext.encodable(text)
                function = self._calls[index]["function"]
                # A new dict: the one before may not be encoded yet where a caller batches chunks.
                self._calls[index]["function"] = {**function, "arguments": function["arguments"] + text}
                return self._chunk({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
            case Finished():
                return self._finished(event)

    def _text(self, text: str, tokens: tuple[TokenLogprob, ...]) -> bytes:
        text = jsontext.encodable(text)
        self._texts.append(text)
        logprobs = [_logprob(token) for token in tokens] if self._logprobs_asked else []
        self._tokens += logprobs
        if not text and not logprobs:
            return b""
        return self._chunk({"content": text}, logprobs=logprobs)

    def _beside(self, field: str, text: str, kept: list[str]) -> bytes:
        """Words that are no answer: thoughts (in the field that servers agreed on), refusals."""
        kept.append(jsontext.encodable(text))
        return self._chunk({field: kept[-1]}) if text else b""

    def _finished(self, event: Finished) -> bytes:
        self._reason, self._usage = _REASONS[event.reason], event.usage
        if self._refusals and self._reason == "content_filter":
            self._reason = "stop"  # as OpenAI ends an answer that refuses in words
        last = self._chunk({}, reason=self._reason)
        if not self._usage_asked:
            return last
        usage = {**self._head("chat.completion.chunk"), "choices": [], "usage": _usage(self._usage)}
        return last + b"data: " + jsontext.encode(usage) + b"\n\n"

    def keepalive(self) -> bytes:
        return self._chunk({})

    def finish(self) -> bytes:
        return DONE

    def error(self, status: int, kind: str, message: str) -> bytes:
        return b"data: " + openai_error(status, kind, message) + b"\n\n"

    def body(self) -> bytes:
        calls = [self._calls[index] for index in sorted(self._calls)]
        text = "".join(self._texts)
        refusal = "".join(self._refusals) or None
        content = text or (None if calls or refusal else "")
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": refusal}
        if thoughts := "".join(self._thoughts):
            message["reasoning_content"] = thoughts
        if calls:
            message["tool_calls"] = calls
        choice = {
            "index": 0,
            "message": message,
            "logprobs": {"content": self._tokens, "refusal": None} if self._logprobs_asked else None,
            "finish_reason": self._reason,
        }
        return jsontext.encode({**self._head("chat.completion"), "choices": [choice], "usage": _usage(self._usage)})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._identity["id"], "object": kind, **self._identity}

    def _chunk(
        self, delta: object, *, reason: str | None = None, logprobs: list[dict[str, Any]] | None = None
    ) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": {"content": logprobs, "refusal": None} if logprobs else None,
            "finish_reason": reason,
        }
        chunk = {**self._head("chat.completion.chunk"), "choices": [choice]}
        if self._usage_asked:
            chunk["usage"] = None
        return b"data: " + jsontext.encode(chunk) + b"\n\n"


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _logprob(token: TokenLogprob) -> dict[str, Any]:
    return {**_token(token.text, token.logprob), "top_logprobs": [_token(text, value) for _, text, value in token.top]}


def _token(text: str, logprob: float) -> dict[str, Any]:
    clean = jsontext.encodable(text)
    # JSON has no infinity; OpenAI writes -9999.0 for a token that cannot be.
    return {"token": clean, "logprob": max(logprob, -9999.0), "bytes": list(clean.encode())}
