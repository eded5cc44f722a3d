"""The dashboard for those who listen rather than look (``ACCESSIBLE=1``): labelled lines, one question at a time.

No boxes, no cursor movement, nothing redrawn. Every command of `reef` works here, so that nothing is missing.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from daemon.core.client import Client
from daemon.core.errors import ReefError
from reef_cli import conversation, diagnostics, output, pages
from reef_cli.outbox import last_answer
from reef_cli.tui.keys import KEYS

_SHOWN = 10
_HELP = "Say a trace's number to read it, good and its number to rate it, list, quit, or any command of reef."
#: What takes a trace's number for its last answer, and how many words stand before that.
_RATES = {"good": 1, "bad": 1, "undo": 1, "edit": 1, "note": 2, "score": 2}


def run(client: Client, run_command: Callable[[list[str]], object]) -> None:
    """Until ``quit`` or the end of input."""
    output.line("Reef, in lines.")
    output.line(_HELP)
    sessions = _listed(client)
    for words in _questions():
        try:
            if words == ["list"]:
                sessions = _listed(client)
            elif words in (["help"], ["?"]):
                _help()
            elif len(words) == 1 and words[0].isascii() and words[0].isdigit():
                _read(client, sessions, int(words[0]))
            else:
                run_command(_named(client, sessions, words))
        except ReefError as error:
            diagnostics.failure(error, as_json=False)


def _named(client: Client, sessions: list[Mapping[str, Any]], words: list[str]) -> list[str]:
    """The receipt of a trace's last answer in place of its number."""
    *before, last = words
    if len(before) != _RATES.get(words[0]) or not last.isdecimal() or not 1 <= int(last) <= len(sessions):
        return words
    return [*before, str(last_answer(client, sessions[int(last) - 1]["id"])["receipt"])]


def _help() -> None:
    """What the dashboard's keys do, as the commands that do the same."""
    output.line(_HELP)
    for text, twins in dict.fromkeys((key.text, key.twins) for key in KEYS if key.twin and key.twin != "reef --help"):
        output.line(f"{', '.join(twin.removeprefix('reef ') for twin in twins)}: {text}.")


def _questions() -> Iterator[list[str]]:
    while True:
        try:
            line = input("reef, what next? ")
            words = shlex.split(line)
        except EOFError:
            return
        except ValueError as error:
            diagnostics.say(f"error: {error}")
            continue
        if words[:1] in (["quit"], ["q"], ["exit"]):
            return
        if words:
            yield words


def _listed(client: Client) -> list[Mapping[str, Any]]:
    sessions: list[Mapping[str, Any]] = client.get("/reef/sessions", limit=_SHOWN)["items"]
    output.line(f"Newest traces: {len(sessions)}.")
    for n, session in enumerate(sessions, 1):
        score = session["score"]
        rated = "not rated" if score is None else conversation.verdict({"score": score, "feedback": None})
        title = output.one_line(session["title"] or "untitled")
        stop = "" if title[-1] in ".?!…" else "."
        output.line(f"Trace {n}: {title}{stop} Rating: {rated}. Turns: {session['turns']}. Name: {session['id']}.")
    return sessions


def _read(client: Client, sessions: list[Mapping[str, Any]], number: int) -> None:
    if not 1 <= number <= len(sessions):
        diagnostics.say(f"there is no trace {number}; list says which there are")
        return
    for line in conversation.lines(pages.trace(client, sessions[number - 1]["id"])):
        output.line(line)
