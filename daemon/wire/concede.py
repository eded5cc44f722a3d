"""A request without what a provider refused of it, where that was a wish and not the question.

Servers differ in which options they take, and refuse a whole request for one that they do not know (400, and its name).
The agent asked in another dialect and cannot know; so an option is left out again, and only that.
"""

import re
from typing import Any, Final

from daemon.wire import jsontext

#: Field → how errors speak of it.
_WISHES: Final[dict[str, tuple[str, ...]]] = {
    "reasoning_effort": ("reasoning_effort", "reasoning effort", "thinking"),
    "reasoning": ("reasoning.effort", "reasoning.summary", "reasoning effort", "'reasoning'", '"reasoning"'),
    "include": ("encrypted", "'include'", "include["),
    "thinking": ("thinking", "budget_tokens"),
    "output_config": ("output_config", "effort"),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "prompt_cache_key": ("prompt_cache_key",),
    "stream_options": ("stream_options",),
}
#: Anthropic's "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for …".
_LIMIT: Final = re.compile(r"max_tokens: \d+ > (\d+)")


def conceded(raw: bytes, said: str) -> bytes | None:
    """The request to send instead after that error; None when the error is about something else."""
    body: dict[str, Any] = jsontext.decode(raw)
    limit = _LIMIT.search(said)
    if limit is not None and "max_tokens" in body:
        return jsontext.encode({**body, "max_tokens": int(limit[1])})
    if "max_completion_tokens" in said and "max_tokens" in body:
        wanted = body.pop("max_tokens")
        return jsontext.encode({**body, "max_completion_tokens": wanted})
    if "cache_control" in said and (plain := _unmarked(body)) != body:
        return jsontext.encode(plain)
    refused = [name for name, words in _WISHES.items() if name in body and any(word in said.lower() for word in words)]
    if not refused:
        return None
    return jsontext.encode({name: value for name, value in body.items() if name not in refused})


def _unmarked(body: dict[str, Any]) -> dict[str, Any]:
    """Without cache marks, which servers that only look like Anthropic's refuse. What is inside a block stays."""

    def plain(blocks: object) -> object:
        if not isinstance(blocks, list) or not all(isinstance(one, dict) for one in blocks):
            return blocks
        return [{name: plain(value) for name, value in one.items() if name != "cache_control"} for one in blocks]

    return {name: plain(value) for name, value in body.items()}
