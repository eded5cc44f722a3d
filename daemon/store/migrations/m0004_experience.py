"""Experience: what happened after an answer (signal), sums by hour and day (rollup), indexes for search, imports.

The full-text index is filled anew together with the signals: one walk over the records makes both.
"""

from typing import Final

STATEMENTS: Final = (
    # What nobody typed as feedback, about the record `seq`: `at` is the record that showed it. `value` is a number
    # where there is one (a tool's exit status).
    """CREATE TABLE signal (
        seq INTEGER NOT NULL REFERENCES record, at INTEGER NOT NULL REFERENCES record, position INTEGER NOT NULL,
        name TEXT NOT NULL, value INTEGER, text TEXT NOT NULL, PRIMARY KEY (seq, at, position)) WITHOUT ROWID""",
    "CREATE INDEX signal_name ON signal (name, seq)",
    "CREATE INDEX signal_at ON signal (at)",
    # The same walk makes both from the start again. Fills while nothing waits.
    "INSERT INTO words (words) VALUES ('delete-all')",
    "UPDATE tally SET indexed = 0",
    # Which records began in an hour (since 1970): bounds for a time, whatever the clock did meanwhile.
    """CREATE TABLE hour (
        hour INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL)""",
    "INSERT INTO hour SELECT started_ns / 3600000000000, min(seq), max(seq) FROM record GROUP BY 1",
    # Sums by hour and day, counted with each record. `start` counts such units since 1970 in UTC, `agent` is 0 without.
    """CREATE TABLE rollup (
        unit TEXT NOT NULL, start INTEGER NOT NULL, scenario INTEGER NOT NULL, agent INTEGER NOT NULL,
        model INTEGER NOT NULL, records INTEGER NOT NULL, turns INTEGER NOT NULL, failed INTEGER NOT NULL,
        retries INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL, duration_us INTEGER NOT NULL,
        PRIMARY KEY (unit, start, scenario, agent, model)) WITHOUT ROWID""",
    *(
        f"""INSERT INTO rollup SELECT '{unit}', r.started_ns / {length}, r.scenario, coalesce(r.agent, 0),
        r.model_asked, count(*), sum(r."end" = 'ok' AND (r.kind = 'main' OR f.kind = 'main')), sum(r."end" <> 'ok'),
        sum(r.kind = 'retry'), sum(r.prompt_tokens), sum(r.cached_tokens), sum(r.completion_tokens), sum(r.duration_us)
        FROM record r LEFT JOIN record f ON f.seq = r.retry_of GROUP BY 2, 3, 4, 5"""
        for unit, length in (("hour", 3_600_000_000_000), ("day", 86_400_000_000_000))
    ),
    # What search walks, newest first.
    "CREATE INDEX record_model ON record (model_asked, seq)",
    "CREATE INDEX record_agent ON record (agent, seq) WHERE agent IS NOT NULL",
    """CREATE INDEX record_failed ON record (seq) WHERE "end" <> 'ok'""",
    "CREATE INDEX record_kind ON record (kind, seq) WHERE kind <> 'main'",
    # The id that an answer had on the wire: a request may go on from it by id, and an import may bring it again.
    """CREATE TABLE answer_id (
        scenario INTEGER NOT NULL REFERENCES name, id TEXT NOT NULL, seq INTEGER NOT NULL REFERENCES record,
        PRIMARY KEY (scenario, id)) WITHOUT ROWID""",
    # Records that came from elsewhere, by the id they had there; the same exchange may be here already under another.
    # `content` hashes what was sent, to tell a repeat from a conflict.
    """CREATE TABLE imported (
        receipt TEXT PRIMARY KEY, seq INTEGER NOT NULL REFERENCES record, content BLOB NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX imported_record ON imported (seq)",
)
