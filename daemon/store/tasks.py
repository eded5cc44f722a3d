"""Tasks: added many at once or not at all, listed, removed. Never more than one row for the same task in one set.

Held-out by construction hangs on two rules here: a prompt that decides (gate, regression) is never a search task too,
and `prompt_key` folds blanks, so that the stream finds a prompt again however it was wrapped.
"""

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

from daemon.core.errors import Conflict, NotFound
from daemon.core.learning import Check, Task, TaskSet
from daemon.store.connection import Reader
from daemon.store.names import Names
from daemon.store.pages import cursor_value, page, page_size
from daemon.store.preparing import Redact

_COLUMNS: Final = 'id, uid, scenario, "set", prompt, form, expression, command, critical, max_tokens, created_ns'


def prompt_key(prompt: str) -> bytes:
    """The same for prompts that differ in blanks only."""
    return blake2b(" ".join(prompt.split()).encode("utf-8", "replace"), digest_size=16).digest()


def add(db: sqlite3.Connection, names: Names, tasks: Sequence[Task], redact: Redact) -> list[tuple[Task, bool]]:
    """Store all of ``tasks`` inside the writer's transaction; each as it is kept now, and whether it is new.

    One that its set has already is merged into it: critical if either is, with the larger limit. Raises Conflict,
    before anything is written, for a prompt that would be both a search task and one that decides.
    """
    tasks = [replace(task, prompt=_redacted(task.prompt, redact)) for task in tasks]
    _held_out(db, names, tasks)
    return [_add(db, names, task) for task in tasks]


def _redacted(text: str, redact: Redact) -> str:
    return redact(text.encode("utf-8", "replace"))[0].decode()


def _held_out(db: sqlite3.Connection, names: Names, tasks: Sequence[Task]) -> None:
    seen: dict[tuple[str, bytes], bool] = {}
    for task in tasks:
        key, searches = prompt_key(task.prompt), task.set is TaskSet.SEARCH
        kept = db.execute(
            'SELECT "set" FROM task WHERE scenario = ? AND prompt_key = ?', (names.find(db, task.scenario), key)
        )
        others = {TaskSet(word) is TaskSet.SEARCH for (word,) in kept}
        if seen.setdefault((task.scenario, key), searches) is not searches or (not searches) in others:
            raise Conflict(
                f"the prompt {task.prompt[:60]!r} would be a search task and one that judges",
                hint="what guides a search must not decide: reef tasks list, then remove one",
            )


def _add(db: sqlite3.Connection, names: Names, task: Task) -> tuple[Task, bool]:
    scenario, key = names.id(db, task.scenario), blake2b(repr(task.check).encode("utf-8", "replace"), digest_size=16)
    place = (scenario, prompt_key(task.prompt), task.set.value, key.digest())
    where = 'scenario = ? AND prompt_key = ? AND "set" = ? AND key = ?'
    known = db.execute(f"SELECT id FROM task WHERE {where}", place).fetchone()
    if known is not None:
        db.execute(
            "UPDATE task SET critical = max(critical, ?), max_tokens = max(max_tokens, ?) WHERE id = ?",
            (task.critical, task.max_tokens, known[0]),
        )
    else:
        check = task.check
        db.execute(
            """INSERT INTO task (scenario, prompt_key, "set", key, uid, prompt, form, expression, command, critical,
            max_tokens, created_ns) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)""",
            (*place, task.id, task.prompt, check.form, check.expression, check.command, task.critical, task.max_tokens,
             task.created_ns or time.time_ns()),
        )  # fmt: skip
    row = db.execute(f"SELECT {_COLUMNS} FROM task WHERE {where}", place).fetchone()
    return _task(db, names, row), known is None


def remove(db: sqlite3.Connection, names: Names, id: str) -> Task:
    """Delete one; what it was. Raises NotFound."""
    row = db.execute(f"SELECT {_COLUMNS} FROM task WHERE uid = ?", (id,)).fetchone()
    if row is None:
        raise NotFound(f"no task {id!r}", hint="reef tasks list")
    db.execute("DELETE FROM task WHERE id = ?", (row[0],))
    return _task(db, names, row)


def tasks(reader: Reader, scenario: str, set: TaskSet | None = None) -> list[Task]:
    """All of a scenario, oldest first."""
    rows = _rows(reader, scenario, set, "ORDER BY id")
    return [_task(reader.db, reader.names, row) for row in rows]


def task_page(
    reader: Reader, scenario: str, set: TaskSet | None = None, *, limit: int = 50, before: str | None = None
) -> tuple[list[Task], str | None]:
    """Newest first, with the cursor of the next page."""
    where = f"AND id < {cursor_value(before)} " if before is not None else ""
    rows = _rows(reader, scenario, set, f"{where}ORDER BY id DESC LIMIT {page_size(limit) + 1}")
    rows, cursor = page(rows, limit)
    return [_task(reader.db, reader.names, row) for row in rows], cursor


def _rows(reader: Reader, scenario: str, set: TaskSet | None, rest: str) -> list[Any]:
    values: list[object] = [reader.names.find(reader.db, scenario)]
    only = ""
    if set is not None:
        only = 'AND "set" = ? '
        values.append(set.value)
    return reader.db.execute(f"SELECT {_COLUMNS} FROM task WHERE scenario = ? {only}{rest}", values).fetchall()


def _task(db: sqlite3.Connection, names: Names, row: Any) -> Task:
    _, uid, scenario, set, prompt, form, expression, command, critical, max_tokens, created = row
    check = Check(form, expression, command)
    return Task(uid, names.text(db, scenario), TaskSet(set), prompt, check, bool(critical), max_tokens, created)
