"""Calls are told one behind the other, as early as that can be."""

import pytest

from daemon.core.errors import EngineError
from daemon.core.generation import EngineEvent, ToolArguments, ToolStart
from daemon.wire.reader import CallOrder, call_id, tool_name


def told(*pieces: tuple[int, str, str]) -> list[list[EngineEvent]]:
    """What each piece (call, name, text) brings, and the end."""
    order = CallOrder("rec_1")
    found = [list(order.piece(key, f"id_{key}" if name else "", name, text)) for key, name, text in pieces]
    return [*found, list(order.rest())]


def test_a_second_call_streams_as_soon_as_the_first_is_whole() -> None:
    assert told((0, "bash", ""), (0, "", '{"a":1}'), (1, "read", ""), (1, "", '{"b"'), (1, "", ":2}")) == [
        [ToolStart(0, "id_0", "bash")],
        [ToolArguments(0, '{"a":1}')],
        [ToolStart(1, "id_1", "read")],
        [ToolArguments(1, '{"b"')],
        [ToolArguments(1, ":2}")],
        [],
    ]


def test_pieces_that_are_mixed_come_in_order_and_no_later_than_needed() -> None:
    assert told((0, "a", '{"x"'), (1, "b", '{"y"'), (1, "", ":2}"), (0, "", ":1}")) == [
        [ToolStart(0, "id_0", "a"), ToolArguments(0, '{"x"')],
        [],
        [],
        [ToolArguments(0, ":1}"), ToolStart(1, "id_1", "b"), ToolArguments(1, '{"y":2}')],
        [],
    ]


def test_a_call_without_arguments_does_not_hold_up_the_next() -> None:
    found = told((0, "a", ""), (1, "b", ""), (1, "", '{"y"'))
    assert found[2] == [ToolStart(1, "id_1", "b"), ToolArguments(1, '{"y"')]


def test_what_comes_for_a_call_that_was_taken_for_whole_is_no_answer() -> None:
    with pytest.raises(EngineError, match="mixed up"):
        told((0, "a", ""), (1, "b", '{"y"'), (0, "", '{"x":1}'))


def test_a_call_cut_short_is_told_as_far_as_it_came() -> None:
    assert told((0, "a", '{"x"'), (1, "b", '{"y"'))[-1] == [ToolStart(1, "id_1", "b"), ToolArguments(1, '{"y"')]


def test_an_empty_object_before_the_arguments_is_none_of_them() -> None:
    """https://github.com/openclaw/openclaw/pull/44237: what was sent cannot be taken back, and is no JSON with more."""
    start = ToolStart(0, "id_0", "a")
    assert told((0, "a", "{}"), (0, "", '{"x"'), (0, "", ":1}")) == [
        [start],
        [ToolArguments(0, '{"x"')],
        [ToolArguments(0, ":1}")],
        [],
    ]
    assert told((0, "a", '{} {"x":1}'))[0] == [start, ToolArguments(0, '{"x":1}')]


def test_an_empty_object_alone_is_the_arguments() -> None:
    start = ToolStart(0, "id_0", "a")
    assert told((0, "a", "{}")) == [[start], [ToolArguments(0, "{}")]]
    second = [ToolArguments(0, "{}"), ToolStart(1, "id_1", "b"), ToolArguments(1, '{"y":2}')]
    assert told((0, "a", "{}"), (1, "b", '{"y":2}')) == [[start], second, []]


def test_a_call_without_an_id_gets_one_of_the_answers_own() -> None:
    (event,) = CallOrder("rec_1").piece(0, "", "bash", "")
    assert event == ToolStart(0, "call_rec_1_0", "bash")


@pytest.mark.parametrize("id", ["toolu_01AbC-9", "call_abc"])
def test_an_id_that_every_vendor_takes_stays(id: str) -> None:
    assert call_id(id) == id


@pytest.mark.parametrize("id", ["functions.bash:0", "x" * 64, "", "ü"])
def test_any_other_becomes_one_and_always_the_same(id: str) -> None:
    assert call_id(id) == call_id(id) == call_id(call_id(id))
    assert call_id(id) != call_id(id + "1")
    assert len(call_id(id)) <= 40


@pytest.mark.parametrize(("name", "stays"), [("Bash", True), ("x" * 64, True), ("mcp.do it", False), ("x" * 90, False)])
def test_a_tools_name_that_vendors_refuse_becomes_another_and_always_the_same(name: str, stays: bool) -> None:
    assert (tool_name(name) == name) is stays
    assert tool_name(name) == tool_name(tool_name(name))
    assert tool_name(name) != tool_name(name[:-1] + "z")
    assert len(tool_name(name)) <= 64
