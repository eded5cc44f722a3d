"""A trace that comes in pages."""

from typing import Any

from daemon.core.client import Client
from reef_cli import pages


class Paged(Client):
    """Three records, one a page."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def get(self, path: str, /, **query: object) -> Any:
        self.asked.append(query["after"])
        n = int(str(query["after"]))
        return {"session": {"id": "ses_1"}, "records": [n], "after": str(n + 1) if n < 2 else None, "before": None}


def test_all_of_it() -> None:
    assert pages.whole(Paged(), "ses_1") == {"session": {"id": "ses_1"}, "records": [0, 1, 2]}


def test_a_page_is_asked_for_when_it_is_wanted() -> None:
    client = Paged()
    records = pages.trace(client, "ses_1")["records"]
    assert next(records) == 0
    assert client.asked == ["0"]
    assert list(records) == [1, 2]
