"""A session's trace, page by page: it may be larger than what one answer should hold."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from daemon.core.client import Client, segment


def pages(client: Client, session: str) -> Iterator[dict[str, Any]]:
    """From the beginning; ``session`` may also be a receipt of it. Raises ReefError."""
    cursor: str | None = "0"
    while cursor is not None:
        page: dict[str, Any] = client.get(f"/reef/traces/{segment(session)}", after=cursor)
        yield page
        cursor = page["after"]


def trace(client: Client, session: str) -> dict[str, Any]:
    """Session and records; ``records`` can be gone through once, a page at a time."""
    rest = pages(client, session)
    first = next(rest)
    return {
        "session": first["session"],
        "records": chain.from_iterable(page["records"] for page in chain([first], rest)),
    }


def whole(client: Client, session: str) -> dict[str, Any]:
    """All of it at once."""
    found = trace(client, session)
    return {**found, "records": list(found["records"])}
