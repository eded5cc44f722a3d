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
    db: sqlite3.Connection, sql: str, key: str, wanted: Mapping[str, object], *, limit: int, before: str | None
) -> tuple[list[Any], str | None]:
    """A page of ``sql`` by ``key``, its first column, latest first.

    ``wanted``: conditions with one ``?`` each and its value; those without one (None) do not count.
    """
    given = {condition: value for condition, value in wanted.items() if value is not None}
    if before is not None:
        given[f"{key} < ?"] = cursor_value(before)
    where = f"WHERE {' AND '.join(given)}" if given else ""
    found = db.execute(f"{sql} {where} ORDER BY {key} DESC LIMIT ?", (*given.values(), page_size(limit) + 1))
    return page(found.fetchall(), limit)
