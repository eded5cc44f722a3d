"""Signals: what happened after an answer, which nobody typed as feedback. Reports never touch them, nor they reports.

They are read off the next request of the conversation: the person's next words, what the tools returned, a stop. Made
after the acknowledgement, never on the way to it (`daemon.store.afterwards`).
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from daemon.core.records import Dialect, End, Kind, Message, Text, ToolResult
from daemon.core.rows import SignalName, SignalRow
from daemon.store import person, titles
from daemon.store.connection import Reader, in_parts

Read = Callable[[Dialect, bytes], Message]

#: How tools tell their exit status, as each agent puts it. Only the first and the last of a result are looked at.
_STATUS: Final = re.compile(
    r"\AExit code:? (\d+)\n"  # Claude Code
    r"|^Process exited with code (\d+)$"  # Codex
    r"|^Exit Code: (\d+)$"  # Qwen Code
    r"|\A<returncode>(-?\d+)</returncode>"  # mini-swe-agent
    r"|\A\{\s*[^\n]{0,2000}\"(?:returncode|exit_code)\": ?(-?\d+)"  # Mistral Vibe, mini-swe-agent; Hermes if short
    r"|\"exit_code\": ?(-?\d+), \"error\": (?:null|\"[^\"]*\")\}\Z"  # Hermes
    r"|^\(?Command exited with code (\d+)\)?\s*\Z",  # Pi, OpenClaw
    re.MULTILINE,
)
_HEAD: Final = 2000
_TAIL: Final = 300
#: What agents say of a tool call that the person did not allow.
_REFUSED: Final = (
    "The user doesn't want to proceed with this tool use",
    "exec command rejected by user",
    "[Operation Cancelled] Reason: User did not allow tool call",
)


@dataclass(frozen=True, slots=True)
class Signal:
    """About the record `seq`; `value` is a tool's exit status, 1 for a failure that has none."""

    seq: int
    name: SignalName
    value: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """A record as signals are read off it: what it goes on from, and what else was said from there before it."""

    seq: int
    dialect: Dialect
    kind: Kind
    end: End
    parent: int | None
    retry_of: int | None
    #: The main line's record that also went on from its parent, and was left behind.
    left: int | None = None


def of(shown: Shown, new: Sequence[Message]) -> Iterator[Signal]:
    """The signals that a record shows; ``new`` are the messages that it adds to the conversation."""
    if shown.end is End.CANCELLED:
        yield Signal(shown.seq, SignalName.STOPPED)
    if shown.kind is Kind.RETRY and shown.retry_of is not None:
        yield Signal(shown.retry_of, SignalName.RETRIED)
    if shown.parent is None or shown.kind in (Kind.RETRY, Kind.SIDE):
        return
    if shown.left is not None:
        yield Signal(shown.left, SignalName.LEFT)
    # What stands before an answer that came along was said before: a history that was written anew repeats it.
    answered = max((n for n, message in enumerate(new) if message.role == "assistant"), default=-1)
    for message in new[answered + 1 :]:
        yield from _of_message(shown.parent, shown.dialect, message)


def _of_message(seq: int, dialect: Dialect, message: Message) -> Iterator[Signal]:
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield _of_tool(seq, dialect, part)
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    if message.role != "user" or not texts:
        return
    if any(person.is_interruption(text) for text in texts):
        yield Signal(seq, SignalName.STOPPED)
    said = titles.one_line(" ".join(words for text in texts if (words := person.written(text).strip())))
    if said:
        yield Signal(seq, SignalName.TURN, text=said)


def _of_tool(seq: int, dialect: Dialect, result: ToolResult) -> Signal:
    if result.content.lstrip().startswith(_REFUSED):
        return Signal(seq, SignalName.REFUSED, text=titles.one_line(result.content))
    status = exit_status(result.content)
    if status is None and result.is_error:
        status = 1
    if status is None and dialect is Dialect.MESSAGES:  # the only one that says so either way
        status = 0
    return Signal(seq, SignalName.TOOL, status, titles.one_line(result.content) if status else "")


def exit_status(content: str) -> int | None:
    """The exit status that a tool's result tells, in the form of any of the agents."""
    ends = (content,) if len(content) <= _HEAD + _TAIL else (content[:_HEAD], content[-_TAIL:])
    for text in ends:
        if found := _STATUS.search(text):
            return int(next(group for group in found.groups() if group is not None))
    return None


def keep(db: sqlite3.Connection, shown: Sequence[tuple[int, Sequence[Signal]]]) -> None:
    """Store what each record showed. Only inside the writer's transaction."""
    db.executemany(
        "INSERT OR REPLACE INTO signal (seq, at, position, name, value, text) VALUES (?,?,?,?,?,?)",
        [(one.seq, at, n, one.name, one.value, one.text) for at, found in shown for n, one in enumerate(found)],
    )


def signals_on(reader: Reader, seqs: Sequence[int]) -> dict[int, list[SignalRow]]:
    """What happened after each of these records, in order; records without any are left out."""
    found: dict[int, list[SignalRow]] = {}
    for part, marks in in_parts(seqs):
        rows = reader.db.execute(
            f"""SELECT s.seq, s.name, s.value, s.text, a.receipt FROM signal s JOIN record a ON a.seq = s.at
            WHERE s.seq IN ({marks}) ORDER BY s.seq, s.at, s.position""",
            part,
        )
        for seq, name, value, text, at in rows:
            found.setdefault(seq, []).append(SignalRow(SignalName(name), value, text, at))
    return found
