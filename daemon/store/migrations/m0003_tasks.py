"""Tasks: what candidates are judged by. Needs only names. One that is removed is gone: evidence has its own copy."""

from typing import Final

STATEMENTS: Final = (
    # `prompt_key` is the hash of the prompt with blanks folded, `key` that of the check. Equal in both within one set:
    # the same task.
    """CREATE TABLE task (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, scenario INTEGER NOT NULL REFERENCES name,
        "set" TEXT NOT NULL, prompt TEXT NOT NULL, form TEXT, expression TEXT, command TEXT, critical INTEGER NOT NULL,
        max_tokens INTEGER NOT NULL, created_ns INTEGER NOT NULL, prompt_key BLOB NOT NULL, key BLOB NOT NULL,
        UNIQUE (scenario, prompt_key, "set", key),
        CHECK ((form IS NOT NULL) + (expression IS NOT NULL) + (command IS NOT NULL) = 1))""",
    'CREATE INDEX task_list ON task (scenario, "set", id)',
)
