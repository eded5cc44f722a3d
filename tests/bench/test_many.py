"""Homes with many records: the store finds nothing wrong in them, and lists them all."""

from pathlib import Path

import pytest

from bench import many
from daemon.store.db import Store


def test_a_home_with_many_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = many.home(3000)
    assert many.home(3000) == home
    store = Store.open(home.database)
    try:
        page, _ = store.sessions(limit=2)
        assert [session.title for session in page] == ["the newest of them", "task 998: why does test 998 fail?"]
        assert store.counts()["sessions"] == 3000
        oldest, following = store.sessions(limit=5, before="6")
        assert (len(oldest), following) == (5, None)
        assert store.record(str(store.records(limit=1)[0][0].receipt)).session == page[0].id
    finally:
        store.close()
