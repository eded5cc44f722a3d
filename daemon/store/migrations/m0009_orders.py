"""Lists of sessions in other orders than that of their last activity: an index for each, narrow where few have it.

Each writes a page more for a record whose session has such a value; `daemon.store.orders` asks in the same words.
"""

from typing import Final

STATEMENTS: Final = (
    "CREATE INDEX session_tokens ON session (min(prompt_tokens + completion_tokens, 17179869183))",
    """CREATE INDEX session_cost ON session (CAST(min(cost_usd * 1e6, 17179869183.0) AS INTEGER))
        WHERE cost_usd IS NOT NULL""",
    "CREATE INDEX session_latency ON session (min(duration_us / max(records, 1) / 1000, 17179869183))",
    """CREATE INDEX session_rating ON session
        (CAST(max(min(score * 1e3, 17179869183.0), -17179869183.0) AS INTEGER)) WHERE score IS NOT NULL""",
)
