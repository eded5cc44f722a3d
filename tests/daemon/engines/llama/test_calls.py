import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.generation import TextDelta, ToolArguments, ToolStart
from daemon.core.records import Tool
from daemon.engines.llama.calls import CallEvent, CallParser, call_text, new_call_id, read_call, tools_text

NAMES = ("read_file", "write")
CALL = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
ARGUMENTS = '{"path": "a.txt"}'


def parse(pieces: Iterable[str], names: Iterable[str] = NAMES) -> tuple[str, list[tuple[str, str]]]:
    """All text, and all calls as (name, arguments)."""
    parser = CallParser(list(names))
    events: list[CallEvent] = []
    for piece in pieces:
        events += parser.feed(piece)
    events += parser.finish()
    return summary(events)


def summary(events: list[CallEvent]) -> tuple[str, list[tuple[str, str]]]:
    text, calls = "", []
    for event in events:
        if isinstance(event, TextDelta):
            text += event.text
        elif isinstance(event, ToolStart):
            calls.append((event.name, ""))
        else:
            name, before = calls[event.index]
            calls[event.index] = (name, before + event.text)
    return text, calls


@pytest.mark.parametrize(
    "written",
    [
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}\n</tool_call>\n\n",
        f"<tool_call>\n{CALL}",
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
        f"```tool_call\n{CALL}\n```",
        f"``` json\n{CALL}```",
        CALL,
        f"  {CALL}\n",
        '{"name": "read_file", "parameters": {"path": "a.txt"}}',
        '{"arguments": {"path": "a.txt"}, "name": "read_file"}',
        f'{{"type": "function", "function": {CALL}}}',
        f'{{"id": "call_1", "type": "function", "function": {CALL}}}',
        '{"name": "read_file", "arguments": "{\\"path\\": \\"a.txt\\"}"}',
    ],
)
def test_a_call_is_read_in_each_form_that_models_write(written: str) -> None:
    text, calls = parse([written])
    assert calls == [("read_file", ARGUMENTS)]
    assert text.strip() == ""


@pytest.mark.parametrize(
    "written",
    [
        "Just an answer.",
        '{"name": "delete_everything", "arguments": {}}',
        '<tool_call>\n{"name": "unknown", "arguments": {}}\n</tool_call>',
        '```json\n{"city": "Oslo"}\n```',
        "```python\nprint({'name': 'read_file'})\n```",
        '{"name": "Ada", "age": 36}',
        "int main() {\n  return 0;\n}",
        "{ this is not JSON }",
        "a < b and <tool_box> is no marker",
        "<tool_call> is how a call starts",
        'Write {"name": "read_file", "arguments": {}} in the middle of a line',
        "```",
        "<tool",
        "{",
        '{"na',
        '{"name": "read_file", "arguments": nonsense}',
        "{}",
        "[1, 2]",
    ],
)
def test_what_is_no_call_of_a_known_tool_stays_text_to_the_letter(written: str) -> None:
    assert parse([written]) == (written, [])
    assert parse(written) == (written, [])


def test_text_before_a_call_comes_first_and_the_markup_never_shows() -> None:
    text, calls = parse([f"I will look.\n<tool_call>\n{CALL}\n</tool_call>"])
    assert (text, calls) == ("I will look.\n", [("read_file", ARGUMENTS)])


def test_text_after_a_call_is_kept() -> None:
    text, calls = parse([f"<tool_call>\n{CALL}\n</tool_call>\nDone."])
    assert (text, calls) == ("Done.", [("read_file", ARGUMENTS)])


def test_several_calls_are_numbered_in_order() -> None:
    second = '{"name": "write", "arguments": {"text": "}{"}}'
    for written in (
        f"<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{second}\n</tool_call>",
        f"<tool_call>\n{CALL}\n{second}\n</tool_call>",
        f"```json\n{CALL}\n```\n```json\n{second}\n```",
        f"{CALL}\n{second}",
    ):
        assert parse([written]) == ("", [("read_file", ARGUMENTS), ("write", '{"text": "}{"}')]), written


def test_ids_are_unique_and_look_like_call_ids() -> None:
    ids = {new_call_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(one.startswith("call_") for one in ids)


def test_plain_text_is_never_held_back() -> None:
    parser = CallParser(NAMES)
    for word in ("The ", "answer ", "is ", "42", ".\n", "Yes"):
        assert parser.feed(word) == [TextDelta(word)]


def test_text_is_held_only_while_a_marker_is_undecided() -> None:
    parser = CallParser(NAMES)
    assert parser.feed("a <") == [TextDelta("a ")]
    assert parser.feed("tool") == []
    assert summary(parser.feed("box>")) == ("<toolbox>", [])


def test_an_object_with_another_first_key_is_released_at_once() -> None:
    parser = CallParser(NAMES)
    assert parser.feed('{"') == []
    assert summary(parser.feed('city": ')) == ('{"city": ', [])


def test_an_object_with_an_unknown_name_is_released_with_its_name() -> None:
    parser = CallParser(NAMES)
    assert parser.feed('{"name": "Ad') == []
    assert summary(parser.feed('a", ')) == ('{"name": "Ada", ', [])


def test_numbers_and_spacing_of_arguments_stay_the_models() -> None:
    arguments = '{"n": 1.50,  "big": 12345678901234567890}'
    assert parse([f'{{"name": "write", "arguments": {arguments}}}'])[1] == [("write", arguments)]


def test_raw_line_breaks_in_strings_become_valid_json() -> None:
    _, calls = parse(['<tool_call>\n{"name": "write", "arguments": {"text": "a\nb"}}\n</tool_call>'])
    assert json.loads(calls[0][1]) == {"text": "a\nb"}


def test_braces_and_quotes_inside_strings_do_not_end_the_object() -> None:
    arguments = json.dumps({"code": 'if (x) { return "}"; } \\'})
    assert parse([f'{{"name": "write", "arguments": {arguments}}}'])[1] == [("write", arguments)]


def test_a_call_cut_short_keeps_the_arguments_so_far() -> None:
    assert parse(['<tool_call>\n{"name": "write", "arguments": {"text": "once upon'])[1] == [
        ("write", '{"text": "once upon')
    ]


def test_a_missing_last_brace_is_forgiven() -> None:
    written = '<tool_call>\n{"name": "write", "arguments": {"text": "x"}\n</tool_call>'
    assert parse([written])[1] == [("write", '{"text": "x"}')]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert parse(['{"name": "write"}'])[1] == [("write", "{}")]


def test_without_tools_everything_is_text() -> None:
    assert parse([f"<tool_call>\n{CALL}\n</tool_call>"], ())[0] == f"<tool_call>\n{CALL}\n</tool_call>"


def test_what_we_write_is_what_we_read() -> None:
    assert parse([call_text("write", '{"a": [1, {"b": null}]}')])[1] == [("write", '{"a": [1, {"b": null}]}')]
    assert parse([call_text("write", "")])[1] == [("write", "{}")]


def test_the_tools_text_names_each_tool_and_its_schema() -> None:
    tool = Tool("write", "Writes a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
    text = tools_text([tool])
    assert "Writes a file." in text
    assert '"path"' in text
    assert "<tool_call>" in text


def test_read_call_refuses_what_is_no_object() -> None:
    for text in ("[]", "1", '"x"', '{"name": 3}', '{"name": ["write"]}', '{"function": 7}', "{", '{"name":"nope"}'):
        assert read_call(text, NAMES) is None


FRAGMENTS = st.sampled_from(
    [
        "<tool_call>", "</tool_call>", "<tool_", "```json\n", "```", "``", "\n", " ", "{", "}", '"', "\\", "word", "é",
        CALL, '{"name": "read_file"', ', "arguments": {', '"x": 1}', '{"name": "nope", "arguments": {}}', '{"city": 1}',
        '{"arguments": {}, "name": "write"}', "{\n  ", "[", "]", ":", "<",
    ]
)  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=12).map("".join), st.data())
def test_how_the_text_is_cut_never_changes_the_outcome(written: str, data: st.DataObject) -> None:
    whole = parse([written])
    assert parse(written) == whole
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=6)))
    pieces = [written[a:b] for a, b in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    assert parse(pieces) == whole


@given(st.lists(FRAGMENTS, max_size=12).map("".join))
def test_text_without_a_known_name_comes_through_whole(written: str) -> None:
    assert parse(written, ["another"]) == (written, [])


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=30) | st.integers() | st.none(), max_size=4), st.data())
def test_any_arguments_survive_any_cutting(arguments: dict[str, object], data: st.DataObject) -> None:
    spelled = json.dumps(arguments, ensure_ascii=data.draw(st.booleans()))
    written = f"Ok.\n{call_text('write', spelled)}"
    size = data.draw(st.integers(1, 9))
    pieces = [written[i : i + size] for i in range(0, len(written), size)]
    text, calls = parse(pieces)
    assert (text, [name for name, _ in calls]) == ("Ok.\n", ["write"])
    assert json.loads(calls[0][1]) == arguments


def test_a_long_call_is_read_in_linear_time() -> None:
    arguments = json.dumps({"text": "x" * 40_000})
    parser = CallParser(NAMES)
    events: list[CallEvent] = []
    for start in range(0, len(arguments), 4):
        if start == 0:
            events += parser.feed('<tool_call>{"name": "write", "arguments": ')
        events += parser.feed(arguments[start : start + 4])
    events += parser.feed("}</tool_call>")
    assert [type(event) for event in events] == [ToolStart, ToolArguments]
