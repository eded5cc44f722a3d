"""Learning: runs of recipes (job), what each of them uses up (claim), and what people asked for in words (instruction).

A claim is unique by recipe and thing, whatever claims it: that is what "trains once" rests on.
"""

from typing import Final

STATEMENTS: Final = (
    # `seen_seq`, `seen_report`: the newest record and report when it was made; later ones are news to the next job.
    # `mark`: how far its directory was at its last start; `stalled`: starts in a row that found it the same.
    """CREATE TABLE job (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, scenario INTEGER NOT NULL REFERENCES name,
        recipe TEXT NOT NULL, config TEXT NOT NULL, state TEXT NOT NULL, created_ns INTEGER NOT NULL,
        started_ns INTEGER, ended_ns INTEGER, attempts INTEGER NOT NULL DEFAULT 0, mark TEXT NOT NULL DEFAULT '',
        stalled INTEGER NOT NULL DEFAULT 0, progress TEXT, message TEXT NOT NULL DEFAULT '', outcome TEXT,
        release_id TEXT, error TEXT, seen_seq INTEGER NOT NULL, seen_report INTEGER NOT NULL)""",
    "CREATE INDEX job_scenario ON job (scenario, recipe, id)",
    "CREATE INDEX job_open ON job (state) WHERE state IN ('queued', 'running')",
    # `kind`: record (item = seq), report or instruction (item = id; those count for all recipes, '' here). `content`
    # hashes a record's prompt and answer, so that the same again does not train again.
    """CREATE TABLE claim (
        recipe TEXT NOT NULL, kind TEXT NOT NULL, item INTEGER NOT NULL, job INTEGER NOT NULL REFERENCES job,
        content BLOB, PRIMARY KEY (recipe, kind, item)) WITHOUT ROWID""",
    "CREATE INDEX claim_job ON claim (job, kind, item)",
    "CREATE INDEX claim_content ON claim (recipe, content) WHERE content IS NOT NULL",
    # `recipe` NULL: for whichever runs. `content` hashes what was sent, to tell a repeat from a conflict.
    """CREATE TABLE instruction (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL, scenario INTEGER NOT NULL REFERENCES name,
        recipe TEXT, text TEXT NOT NULL, session TEXT, release_id TEXT, requires TEXT NOT NULL, content BLOB NOT NULL,
        created_ns INTEGER NOT NULL, UNIQUE (scenario, uid))""",
    # What may train, in order; it covers what the walk over it reads. Queries repeat its condition word for word.
    """CREATE INDEX record_trains ON record (scenario, seq, session, kind, retry_of, "end", redacted)
        WHERE "end" = 'ok' AND redacted = 0 AND kind <> 'side'""",
)
