"""Instructions: what people asked recipes for, in words. Kept before anyone is told, and used by one job of any recipe.

Redacted like all that is kept; the same id with other words is a conflict, with the same words the same instruction.
"""

import json
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from daemon.core.errors import Conflict
from daemon.core.learning import Instruction
from daemon.store.connection import Reader
from daemon.store.names import Names
from daemon.store.preparing import Redact


@dataclass(frozen=True, slots=True)
class NewInstruction:
    """``id`` is the caller's ``agent_record_id`` or a new one; ``recipe`` None: for whichever recipe runs."""

    id: str
    scenario: str
    text: str
    recipe: str | None = None
    session: str | None = None
    release_id: str | None = None
    requires: tuple[str, ...] = ()


def instruct(db: sqlite3.Connection, names: Names, new: NewInstruction, redact: Redact) -> tuple[Instruction, bool]:
    """Store an instruction; the bool says whether it is new. Raises Conflict for the same id with other words."""
    text = redact(new.text.encode("utf-8", "replace"))[0].decode()
    requires = redact(json.dumps(list(new.requires), ensure_ascii=False).encode("utf-8", "replace"))[0].decode()
    said = json.dumps([text, requires, new.recipe, new.session, new.release_id], ensure_ascii=False)
    content = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    scenario = names.id(db, new.scenario)
    known = db.execute("SELECT content FROM instruction WHERE scenario = ? AND uid = ?", (scenario, new.id)).fetchone()
    if known is not None and known[0] != content:
        raise Conflict(f"instruction {new.id!r} exists with other content", hint="send it under a new id")
    if known is None:
        db.execute(
            """INSERT INTO instruction (uid, scenario, recipe, text, session, release_id, requires, content, created_ns)
            VALUES (?,?,?,?,?,?,?,?,?)""",
            (new.id, scenario, new.recipe, text, new.session, new.release_id, requires, content, time.time_ns()),
        )
    found = _instructions(db, names, "i.scenario = ? AND i.uid = ?", (scenario, new.id))
    return found[0], known is None


def instructions(reader: Reader, scenario: str, recipe: str, job: str | None = None) -> list[Instruction]:
    """Those for this recipe that no other job has taken, oldest first."""
    row = None if job is None else reader.db.execute("SELECT id FROM job WHERE uid = ?", (job,)).fetchone()
    mine = -1 if row is None else row[0]
    return _instructions(
        reader.db, reader.names,
        "i.scenario = ? AND (i.recipe IS NULL OR i.recipe = ?) AND (c.job IS NULL OR c.job = ?)",
        (reader.names.find(reader.db, scenario), recipe, mine),
    )  # fmt: skip


def unheeded(reader: Reader) -> list[tuple[str, str]]:
    """(scenario, recipe) of instructions for which no job was made since: the daemon died in between."""
    rows = reader.db.execute(
        """SELECT DISTINCT i.scenario, i.recipe FROM instruction i WHERE i.recipe IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM claim c WHERE c.recipe = '' AND c.kind = 'instruction' AND c.item = i.id)
        AND NOT EXISTS (SELECT 1 FROM job j
            WHERE j.scenario = i.scenario AND j.recipe = i.recipe AND j.created_ns >= i.created_ns)"""
    )
    return [(reader.names.text(reader.db, scenario), recipe) for scenario, recipe in rows]


def _instructions(db: sqlite3.Connection, names: Names, where: str, values: Sequence[object]) -> list[Instruction]:
    rows = db.execute(
        f"""SELECT i.uid, i.scenario, i.text, i.created_ns, i.session, i.release_id, i.requires,
        (SELECT uid FROM job WHERE id = c.job)
        FROM instruction i LEFT JOIN claim c ON c.recipe = '' AND c.kind = 'instruction' AND c.item = i.id
        WHERE {where} ORDER BY i.id""",
        values,
    )
    return [
        Instruction(uid, names.text(db, scenario), text, created, session, release, tuple(json.loads(requires)), job)
        for uid, scenario, text, created, session, release, requires, job in rows
    ]
