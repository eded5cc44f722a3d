"""Free text comes out of its JSON as early as it can be read, however the JSON is cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.free_text import FreeText


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.booleans(), st.integers(1, 5))
def test_any_text_comes_out_whole(text: str, ascii_only: bool, size: int) -> None:
    raw = json.dumps({"input": text}, ensure_ascii=ascii_only)
    reader = FreeText()
    assert "".join(reader.feed(raw[i : i + size]) for i in range(0, len(raw), size)) == text


def test_half_an_escape_waits() -> None:
    reader = FreeText()
    assert [reader.feed(piece) for piece in ('{"input":"a\\', "n", "\\ud83d", "\\udc1f", '"}')] == [
        "a",
        "\n",
        "",
        "🐟",
        "",
    ]


@pytest.mark.parametrize("raw", ['{"other": "x", "input": "y"}', "*** Begin", "", '{"input": 3}', '{"input": "\\q"}'])
def test_what_is_no_such_json_gives_nothing(raw: str) -> None:
    assert FreeText().feed(raw) == ""
