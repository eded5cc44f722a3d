"""Old sessions go by themselves, a few at a time; what is young or in use stays."""

import asyncio
from pathlib import Path

import pytest

from daemon.server import retention
from daemon.store.db import Store
from daemon.store.jobs import Claim, NewJob
from tests.fakes.exchanges import STARTED_NS, Conversation


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store" / "reef.db", durability="normal")


def test_what_is_older_goes_in_batches_and_what_is_younger_stays(store: Store) -> None:
    for n in range(25):
        Conversation(store, changes={"started_ns": STARTED_NS - 10**15}).turn(f"old {n}")
    young = Conversation(store).turn("young")
    assert [retention.once(store, STARTED_NS) for _ in range(3)] == [20, 5, 0]
    assert [row.id for row in store.sessions()[0]] == [young.session]
    assert sum(row.records for row in store.rollups("day", since_ns=0)) == 26  # what was used is known longer
    assert store.verify() == []
    assert store.audit.check()[2] is None
    store.close()


def test_its_words_are_gone_once_it_is_settled(store: Store, tmp_path: Path) -> None:
    old = Conversation(store, changes={"started_ns": STARTED_NS - 10**15})
    old.turn("zanzibar8421", "an answer about zanzibar8421")
    Conversation(store).turn("kept")
    asyncio.run(asyncio.wait_for(retention._look(store, STARTED_NS), 30))
    assert b"zanzibar" not in b"".join(path.read_bytes() for path in (tmp_path / "store").iterdir())
    store.close()


def test_a_conversation_that_goes_on_is_not_old(store: Store) -> None:
    talk = Conversation(store)
    talk.turn("long ago", started_ns=STARTED_NS - 10**17)
    talk.turn("today")
    retention.once(store, STARTED_NS - 10**15)
    assert store.counts()["records"] == 2
    store.close()


def test_what_a_job_learns_from_waits_and_holds_up_nobody(store: Store) -> None:
    busy = Conversation(store).turn("in use")
    Conversation(store).turn("free")
    store.learning.create(NewJob("job_1", "default", "sft")).result(20)
    store.learning.claim("job_1", Claim(records=(busy.receipt,))).result(20)
    assert retention.once(store, STARTED_NS * 2) == 1
    assert retention.once(store, STARTED_NS * 2) == 0
    assert [row.id for row in store.sessions()[0]] == [busy.session]
    store.learning.change("job_1", state="done").result(20)
    retention.once(store, STARTED_NS * 2)
    assert store.counts()["sessions"] == 0
    store.close()
