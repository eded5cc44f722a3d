"""The pages of a trace that are held."""

from typing import Any

from reef_cli.tui.paging import MOST, PAGE, Held, seq


def page(first: int, last: int, *, before: bool = True, after: bool = True, word: str = "") -> dict[str, Any]:
    """Records ``first`` to ``last``."""
    return {
        "session": {"id": "ses_1"}, "records": [{"record": {"seq": n}, "word": word} for n in range(first, last + 1)],
        "before": str(first) if before else None, "after": str(last) if after else None,
    }  # fmt: skip


def seqs(held: Held) -> tuple[int, int]:
    entries = held.entries
    assert [seq(entry) for entry in entries] == list(range(seq(entries[0]), seq(entries[-1]) + 1))
    return seq(entries[0]), seq(entries[-1])


def test_pages_join_on_both_sides_and_the_far_ones_go() -> None:
    held = Held()
    held.only(page(901, 950, after=False))
    for n in range(MOST + 1):
        held.earlier(page(851 - 50 * n, 900 - 50 * n))
    assert seqs(held) == (901 - 50 * (MOST + 1), 901 - 50 * (MOST + 1) + 50 * MOST - 1)
    assert (held.before, held.after) == (str(seqs(held)[0]), str(seqs(held)[1]))
    first = seqs(held)[1] + 1
    held.later(page(first, first + 49))
    assert seqs(held)[1] == first + 49
    assert held.before == str(seqs(held)[0])


def test_a_session_that_grows_turn_by_turn_fills_a_page() -> None:
    held = Held()
    held.only(page(1, 1, before=False, after=False))
    for n in range(2, 3 * PAGE):
        held.later(page(n - 1, n, after=False, word="new"))
    assert seqs(held) == (1, 3 * PAGE - 1)
    assert held.after is None
    assert [entry["word"] for entry in held.entries[:2]] == ["new", "new"]


def test_nothing_yet() -> None:
    held = Held()
    held.only(page(1, 0, before=False, after=False))
    assert held.entries == []
    held.later(page(1, 2, before=False, after=False))
    assert seqs(held) == (1, 2)
