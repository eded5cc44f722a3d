"""Strict reading: what is wrong is named, with its value."""

from collections.abc import Callable

import pytest

from daemon.core.errors import BadRequest
from daemon.wire.fields import Fields, read_object, shown

FIELDS = Fields({"s": "x", "n": 3, "f": 0.5, "b": True, "l": [1], "o": {"k": "v"}, "z": None, "whole": 8192.0}, "")


def test_present_fields_are_read_as_their_type() -> None:
    assert FIELDS.text("s") == "x"
    assert FIELDS.whole("n") == 3
    assert FIELDS.number("f", 0, 1) == 0.5
    assert FIELDS.flag("b") is True
    assert FIELDS.items("l") == [1]
    inner = FIELDS.inner("o")
    assert inner is not None
    assert inner.text("k") == "v"


def test_null_and_absent_are_the_same() -> None:
    for name in ("z", "absent"):
        assert FIELDS.text(name) is None
        assert FIELDS.whole(name) is None
        assert FIELDS.number(name, 0, 1) is None
        assert FIELDS.flag(name) is None
        assert FIELDS.items(name) == []
        assert FIELDS.inner(name) is None
        assert FIELDS.texts(name) == ()


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert FIELDS.whole("whole") == 8192


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: FIELDS.text("n"), "n: expected a string, got 3"),
        (lambda: FIELDS.whole("f"), "f: expected an integer, got 0.5"),
        (lambda: FIELDS.whole("b"), "b: expected an integer, got true"),
        (lambda: FIELDS.whole("n", 4), "n: expected at least 4, got 3"),
        (lambda: FIELDS.number("s", 0, 1), 's: expected a number, got "x"'),
        (lambda: FIELDS.number("n", 0, 1), "n: expected a number from 0 to 1, got 3"),
        (lambda: FIELDS.flag("s"), 's: expected true or false, got "x"'),
        (lambda: FIELDS.items("o"), 'o: expected a list, got {"k":"v"}'),
        (lambda: FIELDS.inner("l"), "l: expected an object, got [1]"),
        (lambda: FIELDS.texts("l"), "l: expected a string or a list of strings, got [1]"),
    ],
)
def test_a_wrong_type_names_the_field_and_the_value(read: Callable[[], object], message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read()
    assert caught.value.message == message


def test_a_nested_field_has_its_full_name() -> None:
    inner = Fields({"k": 1}, "messages.0")
    with pytest.raises(BadRequest, match=r"messages\.0\.k"):
        inner.text("k")


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(shown("x" * 10_000)) < 100


def test_stop_texts_may_be_one_or_many_and_empty_ones_do_not_count() -> None:
    assert Fields({"stop": "END"}, "").texts("stop") == ("END",)
    assert Fields({"stop": ["a", "", "b"]}, "").texts("stop") == ("a", "b")


@pytest.mark.parametrize("body", [b"", b"not json", b"[]", b'"text"', b"null"])
def test_a_body_that_is_no_object_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest, match="the body"):
        read_object(body)
