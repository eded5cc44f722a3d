"""Privacy: what must be found to forget a record, and the log of what people and agents decided."""

from typing import Final

STATEMENTS: Final = (
    # What hangs on a row that is to go.
    "CREATE INDEX message_base ON message (base) WHERE base IS NOT NULL",
    "CREATE INDEX frame_base ON frame (base) WHERE base IS NOT NULL",
    "CREATE INDEX span_base ON span (base) WHERE base IS NOT NULL",
    "CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL",
    "CREATE INDEX point_seq ON point (seq)",
    "CREATE INDEX answer_id_seq ON answer_id (seq)",
    # Messages and frames of records that are gone: removed unless another record holds them. `kind`: message, frame.
    "CREATE TABLE orphan (kind TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID",
    # Each entry's `hash` covers it and the one before: nothing in between can be changed or left out unseen. Ids and
    # numbers only, never what was said, so that forgetting does not break it.
    """CREATE TABLE audit (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at_ns INTEGER NOT NULL, event TEXT NOT NULL, facts TEXT NOT NULL,
        hash BLOB NOT NULL)""",
    "CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is final'); END",
    "CREATE TRIGGER audit_stays BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is final'); END",
)
