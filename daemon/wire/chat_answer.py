"""Putting a chat.completions answer together from a body or from chunks, as the agent will send it back.

Tolerates what OpenAI-compatible servers do: `message` in a chunk, content as a list, arguments as an object, every
call at index 0, a new id on every fragment, usage with nulls, errors inside a 200.
"""

from typing import Any

from daemon.core.records import Usage
from daemon.wire import jsontext
from daemon.wire.answer import MOST_TOKENS, Answer


class _Call:
    """One tool call as its fragments come."""

    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.name = name
        self.pieces: list[str] = []

    @property
    def arguments(self) -> str:
        self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def other(self, id: str, name: str) -> bool:
        """Whether a fragment at the same index starts another call.

        Some servers put every call at index 0, others give each fragment of one call a new id: it is another call
        only when it has a name, another id, and the arguments so far are whole.
        """
        if not name or not id or id == self.id:
            return False
        last = next((piece for piece in reversed(self.pieces) if not piece.isspace() and piece), "")
        if not last:
            return name != self.name
        # The look at the end first: reading all of it at each of many fragments takes minutes.
        return last.rstrip().endswith("}") and jsontext.arguments(self.arguments) is not None


class ChatAssembler:
    def __init__(self) -> None:
        self._answer = Answer()
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._refusals: list[str] = []
        self._calls: list[_Call] = []
        #: The last call at each index.
        self._open: dict[str, _Call] = {}

    def whole(self, body: dict[str, Any]) -> None:
        self.event("", body)

    def event(self, name: str, data: dict[str, Any]) -> None:
        if problem := _problem(name, data):
            self._answer.problem = problem
            return
        if isinstance(model := data.get("model"), str):
            self._answer.model = model
        if isinstance(usage := data.get("usage"), dict):
            self._answer.usage = _usage(usage)
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._choice(choice)

    def _choice(self, choice: dict[str, Any]) -> None:
        if isinstance(reason := choice.get("finish_reason"), str):
            self._answer.stop_reason = reason
        for piece in (choice.get("delta"), choice.get("message")):
            if isinstance(piece, dict):
                self._delta(piece)

    def _delta(self, delta: dict[str, Any]) -> None:
        content = delta.get("content")
        for part in content if isinstance(content, list) else [content]:
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                self._texts.append(text)
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str):
            self._reasoning.append(reasoning)
        if isinstance(refusal := delta.get("refusal"), str):
            self._refusals.append(refusal)
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else []):
            if isinstance(call, dict):
                self._call(call, position)
        if isinstance(function := delta.get("function_call"), dict):
            self._call({"index": "function_call", "function": function}, 0)

    def _call(self, piece: dict[str, Any], position: int) -> None:
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        id, name = _text(piece.get("id")), _text(function.get("name"))
        index = piece.get("index")
        place = str(position if index is None else index)
        call = self._open.get(place)
        if call is None or call.other(id, name):
            call = self._open[place] = _Call(id, name)
            self._calls.append(call)
        call.id, call.name = call.id or id, call.name or name
        written = function.get("arguments")
        if isinstance(written, str):
            call.pieces.append(written)
        elif written is not None:
            call.pieces = [jsontext.text(written)]

    def answer(self) -> Answer:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._texts) or None}
        if refusal := "".join(self._refusals):
            message["refusal"] = refusal
        if reasoning := "".join(self._reasoning):
            message["reasoning_content"] = reasoning
        if self._calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _last(call.arguments)}}
                for call in self._calls
            ]
        if len(message) > 2 or message["content"]:
            self._answer.message = message
        return self._answer


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _last(written: str) -> str:
    """The arguments as written, but of several objects in a row the last one."""
    try:
        jsontext.decode(written)
    except jsontext.NotJson:
        value = jsontext.arguments(written)
        if value is not None and written.strip() and written.count("}{"):
            return jsontext.text(value)
    return written


def _problem(name: str, data: dict[str, Any]) -> str | None:
    """What a provider reports as failed inside a 200, in any of the shapes in use."""
    error = data.get("error")
    if isinstance(error, dict):
        error = error.get("message") or jsontext.text(error)
    elif not error and (name == "error" or data.get("object") == "error"):
        error = data.get("message") or jsontext.text(data)
    elif not error and "choices" not in data:
        error = data.get("detail")
    if not error:
        return None
    return f"the provider reported: {error if isinstance(error, str) else jsontext.text(error)}"


def _usage(usage: dict[str, Any]) -> Usage:
    def count(values: object, name: str) -> int:
        value = values.get(name) if isinstance(values, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < MOST_TOKENS else 0

    return Usage(
        prompt=count(usage, "prompt_tokens"),
        completion=count(usage, "completion_tokens"),
        cached=count(usage.get("prompt_tokens_details"), "cached_tokens"),
        reasoning=count(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )
