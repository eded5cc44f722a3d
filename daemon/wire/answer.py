"""What a response amounts to, whatever its dialect, and how its bytes are read: as one body or as events.

Never raises: a response that cannot be read has a problem, not an exception.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from daemon.core.records import Usage
from daemon.wire import jsontext
from daemon.wire.alike import joined
from daemon.wire.sse import events, looks_like_events

#: A provider that counts more than this in one exchange counts wrong; sums of it would not fit the store.
MOST_TOKENS: Final = 1 << 40
_MOST_DOLLARS: Final = 1e6


@dataclass(slots=True)
class Answer:
    """What a response amounts to. ``message`` is in the dialect's request form (a list of items where a message is
    several), None when nothing was said.
    """

    message: dict[str, Any] | list[dict[str, Any]] | None = None
    usage: Usage = field(default_factory=Usage)
    stop_reason: str | None = None
    model: str | None = None
    problem: str | None = None


class Assembler(Protocol):
    """Puts an answer together from one JSON body or from a stream's events, finished or not."""

    def whole(self, body: dict[str, Any]) -> None: ...

    def event(self, name: str, data: dict[str, Any]) -> None: ...

    def adds(self, data: dict[str, Any], text: str) -> bool:
        """Whether events like ``data`` that each have a piece of a text where it has ``text`` come to the same as one
        with all of it."""
        ...

    def answer(self) -> Answer: ...


def cost_in(usage: dict[str, Any]) -> float | None:
    """US dollars, where a gateway says it (OpenRouter): with the person's own key at the provider, the provider's part
    stands beside the gateway's.
    """
    cost, details = _dollars(usage.get("cost")), usage.get("cost_details")
    if cost is None or usage.get("is_byok") is not True or not isinstance(details, dict):
        return cost
    return cost + (_dollars(details.get("upstream_inference_cost")) or 0.0)


def usage_of(usage: dict[str, Any], prompt: str = "prompt", completion: str = "completion") -> Usage:
    """OpenAI's counts, whose names begin so: ``prompt_tokens``, ``prompt_tokens_details``."""

    def count(values: object, name: str) -> int:
        value = values.get(name) if isinstance(values, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < MOST_TOKENS else 0

    return Usage(
        prompt=count(usage, f"{prompt}_tokens"),
        completion=count(usage, f"{completion}_tokens"),
        cached=count(usage.get(f"{prompt}_tokens_details"), "cached_tokens"),
        reasoning=count(usage.get(f"{completion}_tokens_details"), "reasoning_tokens"),
        cost=cost_in(usage),
    )


def _dollars(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST_DOLLARS:
        return None
    return float(value)


def problem_in(name: str, data: dict[str, Any]) -> str | None:
    """What a provider reports as failed inside a 200: in its dialect's shape or in one of those that gateways, vLLM and
    SGLang have for every route. ``name`` is the event's.
    """
    error = data.get("error")
    if isinstance(error, dict):
        error = error.get("message") or jsontext.text(error)
    elif not error and "error" in (name, data.get("type"), data.get("object")):
        error = data.get("message") or data.get("detail") or jsontext.text(data)
    elif not error and "choices" not in data:
        error = data.get("detail")
    if not error:
        return None
    return f"the provider reported: {error if isinstance(error, str) else jsontext.text(error)}"


def assemble(assembler: Assembler, body: bytes, stream: bool) -> Answer:
    """Read a response by what it is: some providers stream unasked, and errors come as JSON with any content type."""
    if looks_like_events(body) or (stream and not body.lstrip().startswith(b"{")):
        return _assemble_events(assembler, body)
    try:
        value = jsontext.decode(body) if body else {}
    except jsontext.NotJson:
        return Answer(problem=None if not body.lstrip().startswith(b"{") else "the response is broken JSON")
    if isinstance(value, dict):
        assembler.whole(value)
    return assembler.answer()


def _assemble_events(assembler: Assembler, body: bytes) -> Answer:
    problem = None
    for name, data in events(joined(body, assembler.adds)):
        if data == "[DONE]":
            continue
        try:
            value = jsontext.decode(data)
        except jsontext.NotJson:
            problem = "an event of the response is not JSON"
            continue
        if isinstance(value, dict):
            assembler.event(name, value)
    answer = assembler.answer()
    answer.problem = answer.problem or problem
    return answer
