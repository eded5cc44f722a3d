"""What is remembered of bytes: made once, forgotten by size and when the redaction changes."""

from daemon.wire.memo import Memo


def same(raw: bytes) -> tuple[bytes, int]:
    return raw, 0


def other(raw: bytes) -> tuple[bytes, int]:
    return raw, 1


def test_what_is_known_is_not_made_again() -> None:
    made: list[bytes] = []
    memo: Memo[int] = Memo()

    def make(raw: bytes, redact: object) -> int:
        made.append(raw)
        return len(raw)

    assert memo.get_all([b"a", b"bb"], same, make) == [1, 2]
    assert memo.get_all([b"bb", b"ccc"], same, make) == [2, 3]
    assert made == [b"a", b"bb", b"ccc"]


def test_another_redaction_starts_anew() -> None:
    memo: Memo[int] = Memo()
    assert memo.get(b"a", same, lambda raw, redact: redact(raw)[1]) == 0
    assert memo.get(b"a", other, lambda raw, redact: redact(raw)[1]) == 1


def test_the_least_recently_used_goes_first() -> None:
    memo: Memo[int] = Memo(limit=6)
    made: list[bytes] = []

    def make(raw: bytes, redact: object) -> int:
        made.append(raw)
        return 0

    for raw in (b"aaa", b"bbb", b"aaa", b"ccc", b"aaa", b"bbb"):
        memo.get(raw, same, make)
    assert made == [b"aaa", b"bbb", b"ccc", b"bbb"]
