"""Chains and the points that records leave."""

from daemon.core.records import Dialect
from daemon.store.tree import link, points, start

ROOT = bytes(16)


def chain(*keys: bytes) -> list[bytes]:
    made = [start("s", Dialect.CHAT, ROOT)]
    for key in keys:
        made.append(link(made[-1], key))
    return made


def test_a_chain_depends_on_everything_before_it() -> None:
    assert chain(b"a", b"b")[-1] != chain(b"b", b"a")[-1]
    assert chain(b"a", b"b")[1] == chain(b"a", b"c")[1]
    assert (
        len({start("s", Dialect.CHAT, ROOT), start("t", Dialect.CHAT, ROOT), start("s", Dialect.MESSAGES, ROOT)}) == 3
    )
    assert start("s", Dialect.CHAT, ROOT) != start("s", Dialect.CHAT, b"r" * 16)


def test_a_record_leaves_its_end_and_its_answers() -> None:
    made = chain(b"a")
    assert points(made, None, stray=False) == [(made[-1], False)]
    assert points(made, b"x", stray=False) == [(made[-1], False), (link(made[-1], b"x"), True)]


def test_a_stray_note_leaves_one_more() -> None:
    made = chain(b"a", b"note")
    assert points(made, b"x", stray=True)[-1] == (chain(b"a", b"x")[-1], True)
    assert len(points(made, None, stray=True)) == 1


def test_without_messages_there_is_no_end() -> None:
    assert points(chain(), b"x", stray=False) == [(chain(b"x")[-1], True)]
