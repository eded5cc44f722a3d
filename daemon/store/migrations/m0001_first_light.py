"""The first schema: what was said once (message, frame), what happened (record and its bodies), whose it is (session),
feedback.

List pages read only ``record`` and ``session``: bodies, token ids and the prefix tree lie in tables of their own.
Order is ``seq``, never a clock. Nothing here needs an SQLite newer than 3.31.
"""

from typing import Final

STATEMENTS: Final = (
    # Words that repeat in every record: scenarios, engines, models, weights.
    "CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    # Counts for `reef status`: count(*) over 10⁶ rows is too slow there. `indexed` is the last record in the full-text
    # index.
    """CREATE TABLE tally (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        records INTEGER NOT NULL, sessions INTEGER NOT NULL, reports INTEGER NOT NULL, indexed INTEGER NOT NULL)""",
    "INSERT INTO tally VALUES (1, 0, 0, 0, 0)",
    # `body` is zstd(raw), with the text behind it where `text_at` (where its JSON form stands in raw) is null. Where
    # `base` is set, the dictionary is that message's body, unpacked (never two deep).
    """CREATE TABLE message (
        id INTEGER PRIMARY KEY, hash BLOB NOT NULL, dialect TEXT NOT NULL, key BLOB NOT NULL, role TEXT NOT NULL,
        base INTEGER REFERENCES message, raw_bytes INTEGER NOT NULL, text_at INTEGER, text_bytes INTEGER NOT NULL,
        body BLOB NOT NULL, UNIQUE (hash, dialect))""",
    "CREATE INDEX message_key ON message (key) WHERE base IS NULL",
    # What stands around the messages of a request. `body` is zstd(head ‖ separator ‖ tail), `base` as above.
    """CREATE TABLE frame (
        id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, base INTEGER REFERENCES frame,
        head_bytes INTEGER NOT NULL, separator_bytes INTEGER NOT NULL, body BLOB NOT NULL)""",
    # `main_seq`: the main line's last record; `answer_seq`: its last one that ended ok; `tools`: how many it offered.
    """CREATE TABLE session (
        id INTEGER PRIMARY KEY, uid TEXT NOT NULL UNIQUE, scenario INTEGER NOT NULL REFERENCES name,
        parent INTEGER REFERENCES session, key TEXT, agent INTEGER REFERENCES name, title TEXT NOT NULL DEFAULT '',
        created_ns INTEGER NOT NULL, updated_ns INTEGER NOT NULL, updated_seq INTEGER NOT NULL,
        main_seq INTEGER, answer_seq INTEGER, tools INTEGER NOT NULL DEFAULT 0,
        turns INTEGER NOT NULL DEFAULT 0, records INTEGER NOT NULL DEFAULT 0,
        prompt_tokens INTEGER NOT NULL DEFAULT 0, completion_tokens INTEGER NOT NULL DEFAULT 0,
        cwd TEXT, score REAL, reports INTEGER NOT NULL DEFAULT 0)""",
    "CREATE INDEX session_updated ON session (updated_seq)",
    "CREATE INDEX session_scenario ON session (scenario, updated_seq)",
    "CREATE INDEX session_main ON session (main_seq) WHERE main_seq IS NOT NULL",
    "CREATE INDEX session_scenario_main ON session (scenario, main_seq) WHERE main_seq IS NOT NULL",
    # Ids that agents send for a conversation.
    """CREATE TABLE session_key (
        scenario INTEGER NOT NULL REFERENCES name, key TEXT NOT NULL, session INTEGER NOT NULL REFERENCES session,
        PRIMARY KEY (scenario, key)) WITHOUT ROWID""",
    # The narrow row that lists read. AUTOINCREMENT: a seq is never used again, clients resume from it.
    """CREATE TABLE record (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, receipt TEXT NOT NULL UNIQUE,
        session INTEGER NOT NULL REFERENCES session, scenario INTEGER NOT NULL REFERENCES name,
        kind TEXT NOT NULL, edge TEXT NOT NULL, parent INTEGER REFERENCES record, retry_of INTEGER REFERENCES record,
        dialect TEXT NOT NULL, end TEXT NOT NULL, status INTEGER NOT NULL, stream INTEGER NOT NULL,
        started_ns INTEGER NOT NULL, duration_us INTEGER NOT NULL, first_byte_us INTEGER,
        engine INTEGER NOT NULL REFERENCES name, model_asked INTEGER NOT NULL REFERENCES name,
        model INTEGER REFERENCES name, release_id INTEGER NOT NULL REFERENCES name, weights INTEGER REFERENCES name,
        agent INTEGER REFERENCES name, prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL, stop_reason TEXT, error TEXT,
        preview TEXT NOT NULL, messages INTEGER NOT NULL, tools INTEGER NOT NULL, redacted INTEGER NOT NULL)""",
    "CREATE INDEX record_session ON record (session, seq)",
    "CREATE INDEX record_scenario ON record (scenario, seq)",
    # The request: the first `kept` message ids of `base`'s request, then `ids` (u32). `depth` counts the links below;
    # 0 has no base. `seen` messages were in the parent's prompt and answer. `hash` covers frame and messages; `chain`
    # is the end of the prefix chain over the messages' keys.
    """CREATE TABLE request (
        seq INTEGER PRIMARY KEY REFERENCES record, frame INTEGER NOT NULL REFERENCES frame,
        base INTEGER REFERENCES request, kept INTEGER NOT NULL, depth INTEGER NOT NULL, ids BLOB NOT NULL,
        answer INTEGER REFERENCES message, seen INTEGER NOT NULL, root BLOB NOT NULL, chain BLOB NOT NULL,
        hash BLOB NOT NULL, bytes INTEGER NOT NULL, path TEXT NOT NULL, subagent TEXT, cwd TEXT, git_commit TEXT,
        tags TEXT NOT NULL, note TEXT)""",
    "CREATE INDEX request_base ON request (base) WHERE base IS NOT NULL",
    "CREATE TABLE response (seq INTEGER PRIMARY KEY REFERENCES record, bytes INTEGER NOT NULL, body BLOB NOT NULL)",
    # The prefix tree: where each record's request ends, and (`answered`) where its answer does.
    """CREATE TABLE point (
        hash BLOB NOT NULL, seq INTEGER NOT NULL REFERENCES record, answered INTEGER NOT NULL,
        PRIMARY KEY (hash, seq)) WITHOUT ROWID""",
    # Token-native capture: the first `kept` of base's prompt ‖ completion ids, then `prompt`; ids u32, logprobs f32,
    # zstd.
    """CREATE TABLE span (
        seq INTEGER PRIMARY KEY REFERENCES record, base INTEGER REFERENCES span, kept INTEGER NOT NULL,
        weights INTEGER NOT NULL REFERENCES name, prompt BLOB NOT NULL, completion BLOB NOT NULL,
        logprobs BLOB NOT NULL)""",
    """CREATE TABLE report (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL, scenario INTEGER NOT NULL REFERENCES name,
        score REAL, feedback TEXT, metadata TEXT NOT NULL, content BLOB NOT NULL,
        created_ns INTEGER NOT NULL, undone_ns INTEGER, UNIQUE (scenario, uid))""",
    # Append-only: a report may be taken back once, never rewritten.
    """CREATE TRIGGER report_is_final BEFORE UPDATE ON report
        WHEN OLD.undone_ns IS NOT NULL OR NEW.undone_ns IS NULL OR NEW.uid IS NOT OLD.uid
            OR NEW.scenario IS NOT OLD.scenario OR NEW.score IS NOT OLD.score
            OR NEW.feedback IS NOT OLD.feedback OR NEW.metadata IS NOT OLD.metadata OR NEW.content IS NOT OLD.content
            OR NEW.created_ns IS NOT OLD.created_ns
        BEGIN SELECT RAISE(ABORT, 'a report is final'); END""",
    """CREATE TABLE reference (
        report INTEGER NOT NULL REFERENCES report, position INTEGER NOT NULL,
        seq INTEGER NOT NULL REFERENCES record, session INTEGER NOT NULL REFERENCES session,
        PRIMARY KEY (report, position)) WITHOUT ROWID""",
    "CREATE INDEX reference_record ON reference (seq, report)",
    "CREATE INDEX reference_session ON reference (session, report)",
    # Row id = seq of the record; its text is what that record added to the conversation.
    """CREATE VIRTUAL TABLE words USING fts5 (text, content = '', detail = none, columnsize = 0, prefix = '3')""",
)
