"""Sessions by what they took: tokens, cost, latency, rating. Only what an index serves: a page costs the same of ten
sessions and of a million.

A row's place is one number: its value, in whole units, and its row. A session that moves meanwhile changes its place,
as it does in the list by last activity.
"""

from typing import Final

from daemon.core.errors import UsageError
from daemon.core.orders import Order
from daemon.core.rows import SessionRow
from daemon.store import sessions
from daemon.store.connection import Reader
from daemon.store.pages import LARGEST, cursor_value, page_size

#: The index, its expression (as in m0009_orders), and which sessions have it.
_INDEXES: Final = {
    Order.TOKENS: ("session_tokens", "min(prompt_tokens + completion_tokens, 17179869183)", "1"),
    Order.COST: ("session_cost", "CAST(min(cost_usd * 1e6, 17179869183.0) AS INTEGER)", "cost_usd IS NOT NULL"),
    Order.LATENCY: ("session_latency", "min(duration_us / max(records, 1) / 1000, 17179869183)", "1"),
    Order.RATING: (
        "session_rating", "CAST(max(min(score * 1e3, 17179869183.0), -17179869183.0) AS INTEGER)", "score IS NOT NULL",
    ),
}  # fmt: skip
#: A place is (value + _ZERO) * _ROWS + row: 35 bits of value, either sign, and 28 of row.
_ROWS: Final = 1 << 28
_ZERO: Final = 1 << 34


def ordered(
    reader: Reader, order: Order, limit: int = 50, *, before: str | None = None, after: str | None = None
) -> tuple[list[SessionRow], str | None]:
    """The most first; with ``after`` what has more, the least first. A cursor is a row's ``seq``, its place here."""
    if before is not None and after is not None:
        raise UsageError("before and after exclude each other")
    place = LARGEST if before is None and after is None else cursor_value(before or after or "")
    value, row, size = place // _ROWS - _ZERO, place % _ROWS, page_size(limit)
    beside, behind = statements(order, up=after is not None)
    found = reader.db.execute(beside, (value, row, size + 1)).fetchall()  # of the same value: there may be very many
    found += reader.db.execute(behind, (value, size + 1 - len(found))).fetchall()
    rows = [sessions.placed(reader, id, (value + _ZERO) * _ROWS + id) for id, value in found[:size]]
    return rows, str(rows[-1].seq) if len(found) > size else None


def statements(order: Order, *, up: bool) -> tuple[str, str]:
    """What has the value (?) and a row behind (?), and what has a value behind (?); at most (?) of them."""
    index, value, there = _INDEXES[order]
    bound, way = (">", "ASC") if up else ("<", "DESC")
    select = f"SELECT id, {value} FROM session INDEXED BY {index} WHERE {there} AND {value}"
    return (
        f"{select} = ? AND id {bound} ? ORDER BY id {way} LIMIT ?",
        f"{select} {bound} ? ORDER BY {value} {way}, id {way} LIMIT ?",
    )
