"""What is at hand of the conversations that go on."""

import pytest

from daemon.core.records import Dialect
from daemon.store import recent
from daemon.store.messages import Frame
from daemon.store.recent import Recent, Remembered, Unread
from tests.fakes.exchanges import system, transcript, user


def remembered(seq: int, size: int) -> Remembered:
    return Remembered(seq, (1, "ses_1"), False, (), (), (), (), Frame(b"", b"", b""), 1, b"", size)


def test_what_is_at_hand_is_bounded_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "_LIMIT", 100)
    kept = Recent()
    talks = [transcript([system("s"), user(f"talk {number}")]) for number in range(3)]
    for number, talk in enumerate(talks):
        kept.put("s", Dialect.CHAT, talk, remembered(number, 40))
    assert [kept.get("s", Dialect.CHAT, talk) is None for talk in talks] == [True, False, False]
    assert kept.get("other", Dialect.CHAT, talks[2]) is None
    kept.put("s", Dialect.CHAT, talks[2], remembered(9, 50))
    found = kept.get("s", Dialect.CHAT, talks[2])
    assert found is not None
    assert found.seq == 9
    kept.forget()
    assert kept.get("s", Dialect.CHAT, talks[2]) is None


def test_many_short_conversations_are_bounded_too() -> None:
    kept = Recent()
    talks = [transcript([system("s"), user(f"talk {number}")]) for number in range(600)]
    for number, talk in enumerate(talks):
        kept.put("s", Dialect.CHAT, talk, remembered(number, 40))
    assert sum(kept.get("s", Dialect.CHAT, talk) is not None for talk in talks) == 512


def test_what_waits_for_the_index_is_bounded_and_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "_UNREAD", 100)
    waits, said = Unread(), user("x" * 10)
    for seq in range(4):
        waits.put(seq, (said,))
    waits.put(4, (said, said), 1)
    assert [waits.take(seq) for seq in range(4)] == [((said,), 0), ((said,), 0), None, None], "the rest is read again"
    assert waits.take(4) == ((said, said), 1), "but not what is begun"
    waits.put(5, (said, said))
    assert waits.take(5) == ((said, said), 0)
    assert waits.take(5) is None
    waits.put(6, (said,))
    waits.forget()
    assert waits.take(6) is None
