"""Putting a Responses answer together from a body or from events, as the agent will send it back: a list of items.

Items that are done are taken as they are. What a stream broke off is kept as far as it came.
"""

from typing import Any, Final

from daemon.wire.answer import Answer, problem_in, usage_of

#: Delta event → (kind of the item, where its text goes).
_DELTAS: Final = {
    "response.output_text.delta": ("message", "output_text"),
    "response.refusal.delta": ("message", "refusal"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary_text"),
    "response.reasoning_text.delta": ("reasoning", "reasoning_text"),
    "response.function_call_arguments.delta": ("function_call", "arguments"),
    "response.custom_tool_call_input.delta": ("custom_tool_call", "input"),
}
FINAL: Final = ("response.completed", "response.incomplete", "response.failed", "response.done")
#: The list of an item that holds a kind of text, and the field of the text in its part.
_LISTS: Final = {
    "output_text": ("content", "text"),
    "refusal": ("content", "refusal"),
    "summary_text": ("summary", "text"),
    "reasoning_text": ("content", "text"),
}


class ResponsesAssembler:
    def __init__(self) -> None:
        self._answer = Answer()
        self._items: dict[int | None, dict[str, Any]] = {}
        self._done: set[int | None] = set()
        #: Deltas of items that are not done, by item and part.
        self._texts: dict[tuple[int | None, str, int | None], list[str]] = {}

    def whole(self, body: dict[str, Any]) -> None:
        if body.get("object") == "response" or "output" in body:
            self._response(body, final=True)
        elif problem := problem_in("", body):
            self._answer.problem = problem

    def event(self, name: str, data: dict[str, Any]) -> None:
        kind = data.get("type")
        kind = kind if isinstance(kind, str) and kind else name
        index = _number(data, "output_index")
        if kind in ("response.output_item.added", "response.output_item.done"):
            if isinstance(item := data.get("item"), dict):
                self._items[index] = item
                self._done |= {index} if kind.endswith("done") else set()
        elif kind in _DELTAS:
            item_kind, text_kind = _DELTAS[kind]
            self._items.setdefault(index, {"type": item_kind, "role": "assistant"})
            if isinstance(piece := data.get("delta"), str):
                part = _number(data, "summary_index" if text_kind == "summary_text" else "content_index")
                self._texts.setdefault((index, text_kind, part), []).append(piece)
        elif isinstance(response := data.get("response"), dict):
            self._response(response, final=kind in FINAL)
        elif problem := problem_in(name, data):
            self._answer.problem = problem

    def adds(self, data: dict[str, Any], text: str) -> bool:
        return False  # its events are numbered, no two are alike

    def _response(self, response: dict[str, Any], *, final: bool) -> None:
        if isinstance(model := response.get("model"), str):
            self._answer.model = model
        if isinstance(usage := response.get("usage"), dict):
            self._answer.usage = usage_of(usage, "input", "output")
        if problem := problem_in("", response):
            self._answer.problem = problem
        if not final:
            return
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        status = response.get("status")
        self._answer.stop_reason = next((one for one in (reason, status) if isinstance(one, str)), None)
        output = response.get("output")
        # Some servers leave out here what they streamed before.
        if isinstance(output, list) and len(output) >= len(self._items):
            self._items = {index: item for index, item in enumerate(output) if isinstance(item, dict)}
            self._done = set(self._items)

    def answer(self) -> Answer:
        texts: dict[int | None, dict[tuple[str, int | None], str]] = {}
        for (index, kind, part), pieces in self._texts.items():
            texts.setdefault(index, {})[kind, part] = "".join(pieces)
        items = [
            item if index in self._done else _so_far(item, texts.get(index, {})) for index, item in self._items.items()
        ]
        if items:
            self._answer.message = items
        return self._answer


def _so_far(item: dict[str, Any], texts: dict[tuple[str, int | None], str]) -> dict[str, Any]:
    """An item that was broken off, with what had come of it."""
    lists: dict[str, list[dict[str, str]]] = {}
    for (kind, _), text in texts.items():
        if kind in _LISTS:
            where, field = _LISTS[kind]
            lists.setdefault(where, []).append({"type": kind, field: text})
        else:
            item = {**item, kind: text}
    return {**item, **lists}


def _number(data: dict[str, Any], name: str) -> int | None:
    value = data.get(name)
    return value if isinstance(value, int) else None
