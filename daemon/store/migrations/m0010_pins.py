"""Sessions that a person pinned as golden: kept when others go, and found by it."""

from typing import Final

STATEMENTS: Final = (
    "ALTER TABLE session ADD COLUMN pinned_ns INTEGER",
    "CREATE INDEX session_pinned ON session (pinned_ns) WHERE pinned_ns IS NOT NULL",
)
