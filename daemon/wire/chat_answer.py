"""Putting a chat.completions answer together from a body or from chunks, as the agent will send it back.

Tolerates what OpenAI-compatible servers do: `message` in a chunk, content as a list, usage with nulls, errors inside a
200; for calls see `daemon.wire.chat_calls`.
"""

from typing import Any, Final

from daemon.wire import jsontext
from daemon.wire.answer import Answer, problem_in, usage_of
from daemon.wire.chat_calls import ChatCalls, is_more_of_one

#: Fields of a delta whose text is added to what came before.
_TEXTS: Final = ("content", "reasoning_content", "reasoning", "refusal")


class ChatAssembler:
    def __init__(self) -> None:
        self._answer = Answer()
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._refusals: list[str] = []
        self._calls = ChatCalls()

    def whole(self, body: dict[str, Any]) -> None:
        self.event("", body)

    def event(self, name: str, data: dict[str, Any]) -> None:
        if problem := problem_in(name, data):
            self._answer.problem = problem
            return
        if isinstance(model := data.get("model"), str):
            self._answer.model = model
        if isinstance(usage := data.get("usage"), dict):
            self._answer.usage = usage_of(usage)
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
        if isinstance(content, str):
            self._texts.append(content)
            if len(delta) == 1:  # as nearly all are
                return
        for part in content if isinstance(content, list) else ():
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                self._texts.append(text)
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str):
            self._reasoning.append(reasoning)
        if isinstance(refusal := delta.get("refusal"), str):
            self._refusals.append(refusal)
        self._calls.delta(delta)

    def adds(self, data: dict[str, Any], text: str) -> bool:
        choices = data.get("choices")
        if not (isinstance(choices, list) and len(choices) == 1 and isinstance(choices[0], dict)):
            return False
        if problem_in("", data):
            return False
        delta = choices[0].get("delta")
        if not isinstance(delta, dict) or choices[0].get("message"):
            return False
        said = [name for name, value in delta.items() if value and name != "role"]
        return len(said) == 1 and (
            (said[0] in _TEXTS and delta[said[0]] == text)
            or (said[0] == "tool_calls" and is_more_of_one(delta["tool_calls"], text))
        )

    def answer(self) -> Answer:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._texts) or None}
        if refusal := "".join(self._refusals):
            message["refusal"] = refusal
        if reasoning := "".join(self._reasoning):
            message["reasoning_content"] = reasoning
        if calls := self._calls.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _last(call.arguments)}}
                for call in calls
            ]
        if len(message) > 2 or message["content"]:
            self._answer.message = message
        return self._answer


def _last(written: str) -> str:
    """The arguments as written, but of several objects in a row the last one."""
    try:
        jsontext.decode(written)
    except jsontext.NotJson:
        value = jsontext.arguments(written)
        if value is not None and written.strip() and written.count("}{"):
            return jsontext.text(value)
    return written
