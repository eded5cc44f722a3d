"""Recording never breaks a request, and says when it fails."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from daemon.core.errors import StoreError
from daemon.core.paths import Home
from daemon.core.records import Appended, Exchange, Kind, Transcript
from daemon.server import recorder as module
from daemon.server.privacy import Privacy
from daemon.server.recorder import Recorder
from daemon.store.db import Store
from tests.fakes.exchanges import exchange, transcript, user

MADE = transcript([user("hello")])


class _FullDisk(Store):
    """A store whose disk fills and empties on command."""

    full = False

    def append(self, exchange: Exchange, parse: Callable[[], Transcript]) -> "Future[Appended]":
        if not self.full:
            return super().append(exchange, parse)
        failed: Future[Appended] = Future()
        failed.set_exception(StoreError("the disk is full"))
        return failed


async def test_a_record_is_on_disk_when_record_returns(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "reef.db")
    one = exchange(MADE)
    assert await Recorder(store, Privacy(Home(tmp_path), ())).record(one, lambda: MADE)
    store.close()
    again = Store.open(tmp_path / "reef.db")
    assert again.record(one.receipt).kind is Kind.MAIN
    again.close()


async def test_a_full_disk_is_told_once_and_forgotten_when_it_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = _FullDisk.open(tmp_path / "reef.db")
    assert isinstance(store, _FullDisk)
    recorder = Recorder(store, Privacy(Home(tmp_path), ()))
    with caplog.at_level(logging.WARNING):
        store.full = True
        for _ in range(3):
            assert not await recorder.record(exchange(MADE), lambda: MADE)
        state = recorder.state()
        assert (state.state, state.detail, state.unrecorded) == ("degraded", "the disk is full", 3)
        store.full = False
        assert await recorder.record(exchange(MADE), lambda: MADE)
    assert recorder.state().state == "on"
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    store.close()


async def test_a_store_that_does_not_answer_holds_nobody_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.05)

    class Silent(Store):
        def append(self, exchange: Exchange, parse: Callable[[], Transcript]) -> "Future[Appended]":
            return Future()

    store = Silent.open(tmp_path / "reef.db")
    assert not await asyncio.wait_for(
        Recorder(store, Privacy(Home(tmp_path), ())).record(exchange(MADE), lambda: MADE), 60
    )
    store.close()
