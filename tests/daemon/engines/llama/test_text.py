import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.engines.llama.text import Characters, StopStrings, overlap


def stopped(pieces: list[str], stops: list[str]) -> tuple[str, str | None]:
    cutter = StopStrings(stops)
    text = ""
    for piece in pieces:
        text += cutter.feed(piece)
        if cutter.hit is not None:
            return text, cutter.hit
    return text + cutter.finish(), None


def test_a_character_split_over_tokens_comes_out_whole() -> None:
    characters = Characters()
    crab = "🦀".encode()
    assert [characters.feed(crab[i : i + 1]) for i in range(4)] == ["", "", "", "🦀"]
    assert characters.finish() == ""


def test_half_a_character_at_the_end_is_replaced() -> None:
    characters = Characters()
    assert characters.feed("é".encode()[:1]) == ""
    assert characters.finish() == "�"


@given(st.text(max_size=40), st.integers(1, 5))
def test_characters_lose_nothing(text: str, size: int) -> None:
    data = text.encode("utf-8", "replace")
    characters = Characters()
    pieces = [characters.feed(data[i : i + size]) for i in range(0, len(data), size)]
    assert "".join(pieces) + characters.finish() == data.decode()


@pytest.mark.parametrize(
    ("pieces", "stops", "expected"),
    [
        (["one two STOP three"], ["STOP"], ("one two ", "STOP")),
        (["one S", "TO", "P two"], ["STOP"], ("one ", "STOP")),
        (["one S", "TO two"], ["STOP"], ("one STO two", None)),
        (["ends with STO"], ["STOP"], ("ends with STO", None)),
        (["a\n", "\nHuman: b"], ["\n\nHuman:"], ("a", "\n\nHuman:")),
        (["abcabd"], ["abd", "abc"], ("", "abc")),
        (["aaab"], ["aab"], ("a", "aab")),
        (["x"], ["", "x"], ("", "x")),
        (["nothing to find"], [], ("nothing to find", None)),
    ],
)
def test_stop_strings(pieces: list[str], stops: list[str], expected: tuple[str, str | None]) -> None:
    assert stopped(pieces, stops) == expected


def test_text_that_cannot_become_a_stop_string_is_sent_at_once() -> None:
    cutter = StopStrings(["STOP"])
    assert cutter.feed("hello ") == "hello "
    assert cutter.feed("S") == ""
    assert cutter.feed("o") == "So"


@given(st.text("ab", max_size=20), st.lists(st.text("ab", min_size=1, max_size=3), max_size=3), st.integers(1, 4))
def test_cutting_never_changes_where_it_stops(text: str, stops: list[str], size: int) -> None:
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    found = [text.find(stop) for stop in stops if stop in text]
    result, hit = stopped(pieces, stops)
    if found:
        assert hit is not None
        assert hit not in result
    else:
        assert (result, hit) == (text, None)


def test_overlap_is_a_proper_prefix() -> None:
    assert overlap("abc", "bcd") == 2
    assert overlap("abc", "abc") == 0
    assert overlap("", "abc") == 0
    assert overlap("aab", "abab") == 2
