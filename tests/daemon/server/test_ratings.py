"""Feedback from inside an agent is kept once, and what is answered says what became of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daemon.core.paths import Home
from daemon.core.rows import RecordRow
from daemon.server.events import Changes
from daemon.server.privacy import Privacy
from daemon.server.ratings import Ratings
from daemon.server.recorder import Recorder
from daemon.store.db import Store
from daemon.store.inband import Said
from tests.fakes.exchanges import Conversation


def kept(tmp_path: Path, *said: tuple[Said, bytes], undo_after: int | None = None) -> tuple[list[str], list[Any], int]:
    """What each is answered, the reports that there are then, and how much news they were."""

    async def run() -> tuple[list[str], list[Any], int]:
        store = Store.open(tmp_path / "reef.db", durability="normal")
        try:
            changes = Changes(asyncio.get_running_loop())
            ratings = Ratings(store, Recorder(store, Privacy(Home(tmp_path), ())), changes)
            record: RecordRow = store.record(Conversation(store).turn("q").receipt)
            words = []
            for n, (one, once) in enumerate(said):
                words.append((await ratings.keep(one, record, once)).replace(record.receipt, "rec"))
                if n == undo_after:
                    store.undo(None, record.receipt).result(20)
            return words, store.reports_on([record.receipt]).get(record.receipt, []), changes.told
        finally:
            store.close()

    return asyncio.run(run())


def test_the_same_again_is_one_report_and_one_piece_of_news(tmp_path: Path) -> None:
    words, reports, news = kept(tmp_path, (Said("good"), b"1"), (Said("good"), b"1"), (Said("good", "x"), b"2"))
    assert words == ["recorded good on rec"] * 3
    assert [(one.score, one.feedback) for one in reports] == [(1.0, None), (1.0, "x")]
    assert news == 2


def test_what_was_taken_back_can_be_said_again(tmp_path: Path) -> None:
    _, reports, _ = kept(tmp_path, (Said("bad"), b"1"), (Said("bad"), b"1"), undo_after=0)
    assert [one.undone_ns is None for one in reports] == [False, True]


@pytest.mark.parametrize(
    ("said", "words"),
    [(Said("note"), "a note has words"), (Said("good", "x" * 100_001), "feedback has 100001 characters")],
)
def test_what_cannot_be_kept_is_told(tmp_path: Path, said: Said, words: str) -> None:
    told, reports, _ = kept(tmp_path, (said, b""))
    assert told[0].startswith(f"not recorded: {words}")
    assert reports == []
