"""Bodies as lines: JSON indented, events as they came, megabytes at once."""

import json
import time
from itertools import islice

import pytest

from reef_cli.tui.rawtext import rows


def lines(text: str, width: int = 60) -> list[str]:
    return [line.text for line in rows(text, width)]


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": [True, None, -2.5e3], "c": {"d": "x \\ \" y", "e": {}, "f": []}}, [], {}, [[], [1]], "text", 3,
        [{"a": [{"b": [{}]}]}],
    ],
)  # fmt: skip
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_json_is_indented(value: object, separators: tuple[str, str]) -> None:
    expected = json.dumps(value, indent=2) if isinstance(value, dict | list) else json.dumps(value)
    assert "\n".join(lines(json.dumps(value, separators=separators))) == expected


def test_keys_and_values_have_colours() -> None:
    (_, first, _) = rows('{"key": 1}', 60)
    assert [(first.text[span.start : span.end], span.style) for span in first.spans] == [
        ('"key"', "name"), ("1", "number"),
    ]  # fmt: skip


def test_a_long_string_goes_on_below_and_is_all_there() -> None:
    text = json.dumps({"a": "漢字 " * 40}, ensure_ascii=False)
    shown = lines(text, 30)
    assert "".join(line.strip() if n else line for n, line in enumerate(shown)).replace(" ", "") == text.replace(
        " ", ""
    )


def test_events_of_a_stream_stay_lines() -> None:
    stream = 'event: x\ndata: {"a": "b"}\n\ndata: [DONE]\n'
    shown = list(rows(stream, 60))
    assert [line.text for line in shown] == ["event: x", 'data: {"a": "b"}', "", "data: [DONE]", ""]
    assert [span.style for span in shown[1].spans] == ["string", "string"]


@pytest.mark.parametrize(
    "text", ['{"a": ', "}]}]", '{"unclosed', "[,,:]", "{]", '{"a" "b" 1 2}', "", "\x00{", "[" * 50]
)
def test_broken_json_is_shown_all_the_same(text: str) -> None:
    shown = "".join(lines(text))
    assert [char for char in text if char.isalnum()] == [char for char in shown.replace("x00", "") if char.isalnum()]


@pytest.mark.parametrize(
    "text",
    ['{"a": "' + "x" * 10_000_000 + '"}', "[" * 5_000_000, "[" + "1," * 5_000_000 + "1]", "x" * 10_000_000,
     '"' + "\\\\" * 5_000_000, '["' + "é" * 5_000_000],
)  # fmt: skip
def test_ten_megabytes_open_at_once(text: str) -> None:
    began = time.monotonic()
    first = list(islice(rows(text, 80), 200))
    assert len(first) >= 1
    assert time.monotonic() - began < 2
