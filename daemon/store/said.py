"""What people said that a release was made from: its reports and instructions, by their ids, in their words.

As they are kept: redacted. What was forgotten since is not there any more.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from daemon.store.connection import Reader, in_parts


@dataclass(frozen=True, slots=True)
class Said:
    """``kind``: report or instruction. ``text``: the words, or the answer as the person would have had it."""

    id: str
    kind: str
    score: float | None
    text: str


def said(reader: Reader, scenario: str, ids: Sequence[str]) -> list[Said]:
    """Those of ``ids`` that are known, in that order."""
    number = reader.names.find(reader.db, scenario)
    found: dict[str, Said] = {}
    for part, marks in in_parts(ids):
        where = f"WHERE scenario = ? AND uid IN ({marks})"
        for uid, text in reader.db.execute(f"SELECT uid, text FROM instruction {where}", (number, *part)):
            found[uid] = Said(uid, "instruction", None, text)
        rows = reader.db.execute(f"SELECT uid, score, feedback, metadata FROM report {where}", (number, *part))
        for uid, score, text, metadata in rows:
            edited = json.loads(metadata).get("edited")
            found[uid] = Said(uid, "report", score, text or (edited if isinstance(edited, str) else ""))
    return [found[id] for id in ids if id in found]
