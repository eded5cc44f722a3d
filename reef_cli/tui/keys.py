"""THE table of keys: bindings, footer, `?` help and the README's key table are all made from it.

A key has one meaning wherever it acts. Nothing here imports Textual. Letters and F-keys only: terminals and editors eat
ctrl+m, ctrl+h, ctrl+i, ctrl+[, and often ctrl+p and ctrl+q.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Place(StrEnum):
    """Where the person is."""

    TRACES = "traces"
    TRACE = "trace"
    RELEASES = "releases"
    RELEASE = "release"
    JOBS = "jobs"
    JOB = "job"


LISTS: Final = (Place.TRACES, Place.RELEASES, Place.JOBS)
OPENED: Final = (Place.TRACE, Place.RELEASE, Place.JOB)
EVERYWHERE: Final = tuple(Place)
_RATED: Final = (Place.TRACES, Place.TRACE)
_RELEASES: Final = (Place.RELEASES, Place.RELEASE)
_JOBS: Final = (Place.JOBS, Place.JOB)


@dataclass(frozen=True, slots=True)
class Key:
    """``id`` names what happens (and rebinds it), ``keys`` are Textual's names, ``shown`` a person's.

    ``label`` is the footer's word, ``rank`` its order there (0: not in the footer). ``twin`` is the command that does
    the same.
    """

    id: str
    keys: tuple[str, ...]
    shown: str
    label: str
    text: str
    places: tuple[Place, ...]
    twin: str = ""
    rank: int = 0


KEYS: Final = (
    Key("down", ("j", "down"), "j ↓", "down", "one line down", EVERYWHERE),
    Key("up", ("k", "up"), "k ↑", "up", "one line up", EVERYWHERE),
    Key("bottom", ("G", "end"), "G End", "end", "to the end, and follow it", EVERYWHERE),
    Key("top", ("g", "home"), "g Home", "start", "to the beginning", EVERYWHERE),
    Key("page_down", ("ctrl+d", "pagedown"), "ctrl+d PgDn", "page down", "half a screen down", EVERYWHERE),
    Key("page_up", ("ctrl+u", "pageup"), "ctrl+u PgUp", "page up", "half a screen up", EVERYWHERE),
    Key("open", ("enter",), "Enter", "open", "read the trace", (Place.TRACES,), "reef traces show ID", 1),
    Key("query", ("slash",), "/", "filter", "words, agent:pi, status:error, since:2d …", (Place.TRACES,),
        "reef traces list QUERY", 2),
    Key("all", ("escape",), "Esc", "all", "marks off, then the filter, then the sorting", (Place.TRACES,),
        "reef traces list"),
    Key("sort", ("o",), "o", "sort", "by tokens, cost, latency, rating; activity", (Place.TRACES,),
        "reef traces list --sort tokens", 7),
    Key("mark", ("space",), "space", "mark", "mark it, or no more: for + - 0 c", (Place.TRACES,),
        "reef traces list --json", 6),
    Key("range", ("V", "shift+space"), "V", "mark to here", "mark from the last mark to here", (Place.TRACES,),
        "reef traces list --json"),
    Key("expand", ("l", "right"), "l →", "unfold", "sub-agents, side calls, retries", (Place.TRACES,),
        "reef traces show ID", 8),
    Key("collapse", ("h", "left"), "h ←", "fold", "fold them again", (Place.TRACES,), "reef traces show ID"),
    Key("card", ("enter",), "Enter", "card", "read the release's card", (Place.RELEASES,), "reef releases show ID", 1),
    Key("log", ("enter",), "Enter", "log", "read the job's log", (Place.JOBS,), "reef jobs show ID", 1),
    Key("fold", ("enter", "space"), "Enter", "unfold", "fold or unfold", (Place.TRACE,), "reef traces show --full", 1),
    Key("back", ("escape",), "Esc", "back", "back to the list", OPENED, "", 2),
    Key("good", ("plus",), "+", "good", "rate the answer good", _RATED, "reef good RECEIPT", 3),
    Key("bad", ("minus",), "-", "bad", "rate the answer bad", _RATED, "reef bad RECEIPT", 4),
    Key("clear", ("0",), "0", "clear", "take the answer's ratings back", _RATED, "reef undo RECEIPT", 8),
    Key("note", ("c",), "c", "note", "say something about the answer", _RATED, "reef note TEXT RECEIPT", 5),
    Key("undo", ("z",), "z", "undo", "take back what was done last here", _RATED, "reef undo", 6),
    Key("approve", ("a",), "a", "approve", "release a candidate", _RELEASES, "reef releases approve ID", 3),
    Key("reject", ("x",), "x", "reject", "turn a candidate down", _RELEASES, "reef releases reject ID", 4),
    Key("rollback", ("b",), "b", "roll back", "serve this release again", _RELEASES, "reef releases rollback ID", 5),
    Key("diff", ("d",), "d", "diff", "what it changes", _RELEASES, "reef releases diff ID", 6),
    Key("cancel", ("x",), "x", "cancel", "stop a job", _JOBS, "reef jobs cancel ID", 3),
    Key("follow", ("f",), "f", "follow", "follow the newest, or stop", (Place.TRACES, Place.TRACE, Place.JOB),
        "reef traces tail", 7),
    Key("traces", ("1",), "1", "traces", "what the agents did", EVERYWHERE, "reef traces list"),
    Key("releases", ("2",), "2", "releases", "what they became", EVERYWHERE, "reef releases list"),
    Key("jobs", ("3",), "3", "jobs", "what learns now", EVERYWHERE, "reef jobs list"),
    Key("start", ("s",), "s", "start", "start the daemon", EVERYWHERE, "reef start"),
    Key("help", ("question_mark", "f1"), "? F1", "help", "every key, and its command", EVERYWHERE, "reef --help", 9),
    Key("quit", ("q",), "q", "quit", "leave (anywhere: ctrl+c twice)", EVERYWHERE, "", 10),
)  # fmt: skip

#: What a recording cannot do: ids of the keys that change something.
CHANGES: Final = frozenset(("good", "bad", "clear", "note", "undo", "approve", "reject", "rollback", "cancel", "start"))


def at(place: Place) -> tuple[Key, ...]:
    """The keys that mean something there."""
    return tuple(key for key in KEYS if place in key.places)


def markdown() -> str:
    """The README's table."""
    rows = [f"| `{key.shown}` | {key.text} | {_where(key)} | {f'`{key.twin}`' if key.twin else ''} |" for key in KEYS]
    return "\n".join(["| key | what it does | where | the same from a shell |", "|---|---|---|---|", *rows])


def _where(key: Key) -> str:
    return "everywhere" if key.places == EVERYWHERE else "lists" if key.places == LISTS else ", ".join(key.places)
