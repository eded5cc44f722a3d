"""THE table of keys: bindings, footer, `?` help and the README's key table are all made from it.

A key has one meaning wherever it acts; a person's own keys are `reef_cli.tui.settings`. Nothing here imports Textual.
Letters and F-keys above all: terminals and editors eat others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Place(StrEnum):
    """Where the person is."""

    TRACES = "traces"
    TRACE = "trace"
    RAW = "trace raw"
    CHANGES = "trace changes"
    RELEASES = "releases"
    RELEASE = "release"
    DIFF = "release diff"
    BLAME = "release blame"
    JOBS = "jobs"
    JOB = "job"
    MODELS = "models"
    MODEL = "model"
    LOGS = "logs"
    STATUS = "status"


#: What terminals turn into other keys, or keep for themselves; what editors' terminals keep is never a key's only name.
EATEN: Final = ("ctrl+m", "ctrl+h", "ctrl+i", "ctrl+left_square_bracket", "ctrl+q", "ctrl+s")
EATEN_BY_EDITORS: Final = ("ctrl+p",)

#: The rank of keys that every footer has room for.
ALWAYS: Final = 9

LISTS: Final = (Place.TRACES, Place.RELEASES, Place.JOBS, Place.MODELS, Place.LOGS, Place.STATUS)
OPENED: Final = (Place.TRACE, Place.RAW, Place.CHANGES, Place.RELEASE, Place.DIFF, Place.BLAME, Place.JOB, Place.MODEL)
EXCHANGES: Final = (Place.TRACE, Place.RAW, Place.CHANGES)
EVERYWHERE: Final = tuple(Place)
_RATED: Final = (Place.TRACES, Place.TRACE)
_RELEASES: Final = (Place.RELEASES, Place.RELEASE)
_DECIDED: Final = (*_RELEASES, Place.DIFF)
_JOBS: Final = (Place.JOBS, Place.JOB)
_MODELS: Final = (Place.MODELS, Place.MODEL)


@dataclass(frozen=True, slots=True)
class Key:
    """``id`` names what happens (and rebinds it), ``keys`` are Textual's names, ``shown`` a person's.

    ``label`` is the footer's word, ``rank`` its order there (0: not in the footer). ``twin`` is the command that does
    the same; ``back`` takes it back, where the key does both.
    """

    id: str
    keys: tuple[str, ...]
    shown: str
    label: str
    text: str
    places: tuple[Place, ...]
    twin: str = ""
    rank: int = 0
    back: str = ""

    @property
    def twins(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.twin, self.back)))


KEYS: Final = (
    Key("down", ("j", "down"), "j ↓", "down", "one line down", EVERYWHERE),
    Key("up", ("k", "up"), "k ↑", "up", "one line up", EVERYWHERE),
    Key("bottom", ("G", "end"), "G End", "end", "to the end, and follow it", EVERYWHERE),
    Key("top", ("g", "home"), "g Home", "start", "to the beginning", EVERYWHERE),
    Key("page_down", ("ctrl+d", "pagedown"), "ctrl+d PgDn", "page down", "half a screen down", EVERYWHERE),
    Key("page_up", ("ctrl+u", "pageup"), "ctrl+u PgUp", "page up", "half a screen up", EVERYWHERE),
    Key("open", ("enter",), "Enter", "open", "read the trace", (Place.TRACES,), "reef traces show ID", 1),
    Key("query", ("slash",), "/", "filter", "filter: words, agent:pi since:2d", (Place.TRACES,),
        "reef traces list QUERY", 2),
    Key("reset", ("escape",), "Esc", "reset", "take marks, filter, sorting off", (Place.TRACES,),
        "reef traces list"),
    Key("sort", ("o",), "o", "sort", "sort: tokens cost latency rating", (Place.TRACES,),
        "reef traces list --sort", 7),
    Key("mark", ("space",), "space", "mark", "mark, or no more: to rate many", (Place.TRACES,),
        "reef traces list --json", 6),
    Key("range", ("V", "shift+space"), "V", "mark to here", "mark from the last mark to here", (Place.TRACES,),
        "reef traces list --json"),
    Key("expand", ("l", "right"), "l →", "unfold", "unfold sub-agents and side calls", (Place.TRACES,),
        "reef traces show ID", 8),
    Key("collapse", ("h", "left"), "h ←", "fold", "fold them again", (Place.TRACES,), "reef traces show ID"),
    Key("card", ("enter",), "Enter", "card", "read the release's card", (Place.RELEASES,), "reef releases show ID", 1),
    Key("log", ("enter",), "Enter", "log", "read the job's log", (Place.JOBS,), "reef jobs show ID", 1),
    Key("facts", ("enter",), "Enter", "facts", "all about an engine or a model", (Place.MODELS,),
        "reef models list --json", 1),
    Key("fold", ("enter", "space"), "Enter", "unfold", "fold or unfold", (Place.TRACE,), "reef traces show --full", 1),
    Key("all", ("w",), "w", "all", "unfold everything, or fold it", (Place.TRACE,), "reef traces show --full"),
    Key("changes", ("d",), "d", "changes", "what changed since the request before", (Place.TRACE,),
        "reef traces changes RECEIPT"),
    Key("raw", ("R",), "R", "raw", "request and response as they were sent", (Place.TRACE,), "reef traces raw RECEIPT"),
    Key("side", ("tab",), "Tab", "other side", "the response, or the request again", (Place.RAW,),
        "reef traces raw --side response", 1),
    Key("curl", ("Y",), "Y", "curl", "copy the request as a curl command", EXCHANGES, "reef traces curl RECEIPT"),
    Key("find", ("slash",), "/", "find", "find words in what is read", OPENED, "reef traces show --full"),
    Key("next_hit", ("n",), "n", "next", "where the words are next", OPENED, "reef traces show --full"),
    Key("previous_hit", ("N",), "N", "previous", "where the words are above", OPENED, "reef traces show --full"),
    Key("editor", ("e",), "e", "editor", "all of it in $EDITOR", OPENED, "reef traces show --full"),
    Key("pager", ("p",), "p", "pager", "all of it in $PAGER", OPENED, "reef traces show --full"),
    Key("back", ("escape", "q"), "Esc q", "back", "back to the list", OPENED, "", 2),
    Key("good", ("plus",), "+", "good", "rate the answer good", _RATED, "reef good RECEIPT", 3),
    Key("bad", ("minus",), "-", "bad", "rate the answer bad", _RATED, "reef bad RECEIPT", 4),
    Key("clear", ("0",), "0", "clear", "take the answer's ratings back", _RATED, "reef undo RECEIPT", 8),
    Key("note", ("c",), "c", "note", "say something about the answer", _RATED, "reef note TEXT RECEIPT", 5),
    Key("score", ("v",), "v", "score", "give a mark, where it has a scale", _RATED, "reef score N RECEIPT"),
    Key("pin", ("asterisk",), "*", "pin", "call it golden, or no longer", _RATED, "reef traces pin ID",
        back="reef traces unpin ID"),
    Key("task", ("t",), "t", "task", "make a task of the question", _RATED, "reef tasks add --from ID"),
    Key("undo", ("z",), "z", "undo", "take back what was done last here", _RATED, "reef undo", 6),
    Key("file", ("enter", "space"), "Enter", "unfold", "fold or unfold a file", (Place.DIFF,),
        "reef releases diff ID", 1),
    Key("approve", ("a",), "a", "approve", "release a candidate", _DECIDED, "reef releases approve ID", 3),
    Key("reject", ("x",), "x", "reject", "turn a candidate down", _DECIDED, "reef releases reject ID", 4),
    Key("rollback", ("b",), "b", "roll back", "serve this release again", _DECIDED, "reef releases rollback ID", 5),
    Key("diff", ("d",), "d", "diff", "what it changes", _RELEASES, "reef releases diff ID", 6),
    Key("hold", ("asterisk",), "*", "pin", "hold clients at it, or no longer", _DECIDED, "reef releases pin ID", 7,
        back="reef releases unpin"),
    Key("blame", ("B",), "B", "blame", "who put each line of the file there", (Place.DIFF,),
        "reef releases blame PATH ID", 8),
    Key("cancel", ("x",), "x", "cancel", "stop a job", _JOBS, "reef jobs cancel ID", 3),
    Key("use", ("u",), "u", "use", "answer with this model", _MODELS, "reef models use NAME", 3),
    Key("record", ("P",), "P", "pause", "pause recording, or go on", (Place.STATUS,), "reef pause", 3, "reef resume"),
    Key("check", ("r",), "r", "check", "run the checks again", (Place.STATUS,), "reef doctor", 4),
    Key("filter", ("slash",), "/", "filter", "only lines with these words", (Place.LOGS,), "reef logs WORDS", 1),
    Key("level", ("l",), "l", "level", "only lines of a level and up", (Place.LOGS,), "reef logs level:warning", 2),
    Key("source", ("tab",), "Tab", "log", "another log: engine, a job", (Place.LOGS,), "reef logs --of engine", 3),
    Key("follow", ("f",), "f", "follow", "follow the newest, or stop",
        (Place.TRACES, Place.TRACE, Place.JOB, Place.LOGS),
        "reef traces tail", 7),
    Key("traces", ("1",), "1", "traces", "traces: what the agents did", EVERYWHERE, "reef traces list"),
    Key("releases", ("2",), "2", "releases", "releases: what they became", EVERYWHERE, "reef releases list"),
    Key("jobs", ("3",), "3", "jobs", "jobs: what learns now", EVERYWHERE, "reef jobs list"),
    Key("models", ("4",), "4", "models", "models: what answers", EVERYWHERE, "reef models list"),
    Key("logs", ("5",), "5", "logs", "logs: what the daemon said", EVERYWHERE, "reef logs"),
    Key("status", ("6",), "6", "status", "status: what runs, the checks", EVERYWHERE, "reef status"),
    Key("suspend", ("ctrl+z",), "ctrl+z", "suspend", "suspend; fg in the shell comes back", EVERYWHERE),
    Key("copy", ("y",), "y", "copy", "its id, or the line, to the clipboard", EVERYWHERE),
    Key("hints", ("H",), "H", "hints", "the hint at the bottom: off, or on again", EVERYWHERE),
    Key("palette", ("colon", "ctrl+p"), ": ctrl+p", "commands", "find any action, theme or command", EVERYWHERE,
        "reef --help", 8),
    Key("start", ("s",), "s", "start", "start the daemon", EVERYWHERE, "reef start"),
    Key("help", ("question_mark", "f1"), "? F1", "help", "every key, and its command", EVERYWHERE, "reef --help", 9),
    Key("quit", ("q",), "q", "quit", "leave (anywhere: ctrl+c twice)", LISTS, "", 10),
)  # fmt: skip

#: What a recording cannot do: ids of the keys that change something.
CHANGES: Final = frozenset(
    (
        "good",
        "bad",
        "clear",
        "note",
        "score",
        "pin",
        "task",
        "undo",
        "approve",
        "reject",
        "rollback",
        "hold",
        "cancel",
        "use",
        "record",
        "start",
    )
)


def at(place: Place, table: Sequence[Key] = KEYS) -> tuple[Key, ...]:
    """The keys that mean something there."""
    return tuple(key for key in table if place in key.places)


def markdown() -> str:
    """The README's table."""
    rows = [f"| `{key.shown}` | {key.text} | {_where(key)} | {_commands(key)} |" for key in KEYS]
    return "\n".join(["| key | what it does | where | the same from a shell |", "|---|---|---|---|", *rows])


def _commands(key: Key) -> str:
    return ", ".join(f"`{twin}`" for twin in key.twins)


def _where(key: Key) -> str:
    return "everywhere" if key.places == EVERYWHERE else "lists" if key.places == LISTS else ", ".join(key.places)
