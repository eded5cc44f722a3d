"""What was paid, and what the list of sessions says of each without looking at its records.

Costs are in US dollars, NULL: unknown, as all are that were recorded before. Sums are of those that are known.
"""

from typing import Final

STATEMENTS: Final = (
    "ALTER TABLE record ADD COLUMN cost_usd REAL",
    "ALTER TABLE session ADD COLUMN cost_usd REAL",
    "ALTER TABLE rollup ADD COLUMN cost_usd REAL",
    # Of all records; the others count records by their kind.
    *(
        f"ALTER TABLE session ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0"
        for name in ("duration_us", "subagents", "side", "retries")
    ),
    """UPDATE session SET (duration_us, subagents, side, retries) = (
        SELECT coalesce(sum(duration_us), 0), coalesce(sum(kind = 'subagent'), 0), coalesce(sum(kind = 'side'), 0),
        coalesce(sum(kind = 'retry'), 0) FROM record WHERE session = session.id)""",
)
