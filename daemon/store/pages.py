"""Keyset pages: a cursor is the place of the last row shown, so that a page costs the same wherever it lies."""

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from daemon.core.errors import UsageError

_LARGEST_PAGE: Final = 1000
LARGEST: Final = (1 << 63) - 1


def page_size(limit: int) -> int:
    """``limit`` in 1..1000; raises UsageError below."""
    if limit < 1:
        raise UsageError(f"limit {limit} is not a positive number")
    return min(limit, _LARGEST_PAGE)


def cursor_value(cursor: str) -> int:
    """Raises UsageError for what no page ever gave out."""
    if not (cursor.isascii() and cursor.isdecimal()) or int(cursor[:20]) > LARGEST:
        raise UsageError(f"{cursor!r} is not a cursor", hint="use `next` of the page before")
    return int(cursor)


def page(rows: list[Any], limit: int) -> tuple[list[Any], str | None]:
    """Cut a query of one row more than the page; each row begins with its place in the order."""
    size = page_size(limit)
    return (rows[:size], str(rows[size - 1][0])) if len(rows) > size else (rows, None)


def rows(
    db: sqlite3.Connection, sql: str, wanted: Mapping[str, object], *, limit: int, before: str | None,
    after: str | None = None,
) -> tuple[list[Any], str | None]:  # fmt: skip
    """A page of ``sql`` by its first column, latest first; with ``after`` what came later, oldest first.

    ``wanted``: conditions with one ``?`` each and its value; those without one (None) do not count.
    """
    if before is not None and after is not None:
        raise UsageError("before and after exclude each other")
    given = {condition: value for condition, value in wanted.items() if value is not None}
    key = sql.removeprefix("SELECT ").partition(",")[0]
    bound, order, place = ("<", "DESC", before) if after is None else (">", "ASC", after)
    if place is not None:
        given[f"{key} {bound} ?"] = cursor_value(place)
    where = f"WHERE {' AND '.join(given)}" if given else ""
    found = db.execute(f"{sql} {where} ORDER BY {key} {order} LIMIT ?", (*given.values(), page_size(limit) + 1))
    return page(found.fetchall(), limit)
