"""Pins: kept by age and by broad purges, found, taken back."""

from pathlib import Path

import pytest

from daemon.core.errors import NotFound
from daemon.core.privacy import Purge, Purged
from daemon.server import retention
from daemon.store.db import Store
from daemon.store.query import parse
from tests.fakes.exchanges import STARTED_NS, Conversation


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store" / "reef.db", durability="normal")


def purge(store: Store, wanted: Purge) -> Purged:
    planned = store.purges.plan(wanted)
    purged = store.purges.run(wanted, lambda *_: None)
    assert (planned.pinned, planned.kept_pinned) == (purged.pinned, purged.kept_pinned)
    return purged


def test_a_pin_shows_once_and_goes_again(store: Store) -> None:
    one, other = Conversation(store).turn("golden"), Conversation(store).turn("not")
    ids = [one.session, other.session]
    assert store.pin(ids[:1], pinned=True).result(20) == (one.session,)
    assert store.pin(ids, pinned=True).result(20) == (other.session,)
    assert [row.pinned for row in store.sessions()[0]] == [True, True]
    assert store.pin(ids[1:], pinned=False).result(20) == (other.session,)
    assert store.pin(ids[1:], pinned=False).result(20) == ()
    assert (store.session(one.session).pinned, store.session(other.session).pinned) == (True, False)
    events = [row.event for row in store.audit.page(10, None)[0]]
    assert events == ["unpin", "pin", "pin"]
    store.close()


def test_all_or_none(store: Store) -> None:
    talk = Conversation(store).turn("golden")
    with pytest.raises(NotFound, match="ses_nobody"):
        store.pin([talk.session, "ses_nobody"], pinned=True).result(20)
    assert not store.session(talk.session).pinned
    store.close()


def test_it_is_found(store: Store) -> None:
    one, other = Conversation(store).turn("golden pineapple"), Conversation(store).turn("pineapple")
    store.pin([one.session], pinned=True).result(20)

    def found(query: str) -> list[str]:
        return [hit.record.receipt for hit in store.search(parse(query)).items]

    assert found("is:pinned") == [one.receipt]
    assert found("-is:pinned") == [other.receipt]
    assert [row.id for row in store.sessions_with(parse("is:pinned"))[0]] == [one.session]
    assert found(f"is:pinned session:{other.session}") == []
    store.close()


def test_age_leaves_it(store: Store) -> None:
    _, golden = (
        Conversation(store, changes={"started_ns": STARTED_NS - 10**15}).turn(text) for text in ("old", "golden")
    )
    assert retention.once(store, STARTED_NS - 10**16) == 0
    store.pin([golden.session], pinned=True).result(20)
    assert [retention.once(store, STARTED_NS) for _ in range(2)] == [1, 0]
    assert [row.id for row in store.sessions()[0]] == [golden.session]
    store.pin([golden.session], pinned=False).result(20)
    assert retention.once(store, STARTED_NS) == 1
    store.close()


def test_a_broad_purge_leaves_it_and_says_so(store: Store) -> None:
    Conversation(store).turn("one")
    golden = Conversation(store).turn("golden")
    store.pin([golden.session], pinned=True).result(20)
    purged = purge(store, Purge(scenario="default"))
    assert (purged.sessions, purged.pinned, purged.kept_pinned) == (1, 0, 1)
    purged = purge(store, Purge(scenario="default", pinned=True))
    assert (purged.sessions, purged.pinned, purged.kept_pinned) == (1, 1, 0)
    assert store.counts()["sessions"] == 0
    store.close()
