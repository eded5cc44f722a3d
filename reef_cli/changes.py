"""What changed since the previous request, as lines: what was added, or where the beginning is another. Inert."""

from collections.abc import Iterator, Mapping
from typing import Any

from reef_cli import output

_PLACES = {
    "model": "another model",
    "tools": "the tools are others",
    "system": "the system prompt is another",
    "instructions": "the instructions are others",
    "answer": "the answer came back otherwise",
}
_WIDE = 72


def lines(told: Mapping[str, Any]) -> Iterator[str]:
    """As `GET /reef/records/{receipt}/changes` tells it. A line that begins with + or - is what is new and what was."""
    if told["previous"] is None:
        yield f"{told['receipt']} is the first request there: none comes before it to compare it with"
        return
    yield f"{told['receipt']} after {told['previous']}"
    yield from _broken(told) if told["broken"] else [_whole(told)]
    for message in told["added"]:
        size = output.count(message["characters"], "character")
        yield f"+ added: {message['role']}, {size}: {_one(message['begins'])}"
    if not told["added"]:
        yield "no message was added"
    for setting in told["settings"]:
        yield f"setting {output.visible(setting['name'], keep='')} differs:"
        yield from _parted(setting)
    if told["cached_tokens"]:
        yield f"read from the cache: {told['cached_tokens']} of {told['prompt_tokens']} tokens"


def _whole(told: Mapping[str, Any]) -> str:
    if told["chained"]:
        return "it names the answer that it goes on from; what was said before is not sent again"
    return f"the beginning is the same: {output.count(told['kept'], 'message')}"


def _broken(told: Mapping[str, Any]) -> Iterator[str]:
    broken = told["broken"]
    place = _PLACES.get(broken["at"]) or f"message {broken['message'] + 1} ({broken['role']}) is another"
    after = "" if broken["message"] is None else f" after {output.count(told['kept'], 'message')} that are the same"
    yield f"! the beginning is broken: {place}{after}"
    if told["edge"] in ("compaction", "rewrite"):
        yield f"  the agent's {told['edge']}"
    thrown = output.count(broken["tokens"], "token")
    yield f"  about {thrown} of cache thrown away; first difference at character {broken['offset'] + 1}:"
    yield from _parted(broken)


def _parted(parting: Mapping[str, Any]) -> Iterator[str]:
    yield f"- {_one(parting['was'])}" if parting["was"] else "- (nothing)"
    yield f"+ {_one(parting['now'])}" if parting["now"] else "+ (nothing)"


def _one(text: str) -> str:
    return output.one_line(text, _WIDE * 2)
