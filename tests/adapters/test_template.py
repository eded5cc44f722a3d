"""Templates: values of any type in data, texts elsewhere, and never a template in a value."""

import json
import tomllib
from pathlib import Path

import pytest

from adapters import template

VALUES = {"REEF_A": {"k": [1]}, "REEF_B": 'it\'s "b" $REEF_A', "REEF_NONE": None}
SOURCE = {"a": "$REEF_A", "b": "is $REEF_B.", "list": ["$REEF_A", 1], "gone": "$REEF_NONE", "own": "$HOME $REEFER"}
MADE = {"a": {"k": [1]}, "b": 'is it\'s "b" $REEF_A.', "list": [{"k": [1]}, 1], "own": "$HOME $REEFER"}


def test_data_takes_values_of_any_type(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(SOURCE))
    assert json.loads(template.filled({"file": "x.json"}, VALUES, tmp_path)) == MADE
    assert json.loads(template.filled({"json": SOURCE}, VALUES, tmp_path)) == MADE
    assert tomllib.loads(template.filled({"toml": SOURCE}, VALUES, tmp_path)) == MADE


def test_text(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("A: $REEF_B $OTHER\n")
    for source in ({"file": "x.md"}, "A: $REEF_B $OTHER\n"):
        assert template.filled(source, {"REEF_B": "$REEF_A\\1"}, tmp_path) == "A: $REEF_A\\1 $OTHER\n"


def test_a_word_is_on_one_line() -> None:
    assert json.loads(template.word({"json": SOURCE}, VALUES)) == MADE
    made = template.word({"toml": SOURCE, "before": "x.$REEF_B="}, {**VALUES, "REEF_B": "b"})
    assert made.startswith("x.b=")
    assert "\n" not in made
    assert tomllib.loads(f"v = {made.removeprefix('x.b=')}")["v"] == {**MADE, "b": "is b."}
    assert template.word("$REEF_B", {"REEF_B": "b"}) == "b"


@pytest.mark.parametrize("text", ['a "b"', "new\nline", "\x00\x1f\x7f", "\\ ü 項目 \U0001f41a", "\u2028"])
def test_toml_reads_what_was_written(text: str) -> None:
    value = {text: [text, {"a b": text}, True, 1, 1.5]}
    assert tomllib.loads(f"v = {template.toml(value)}")["v"] == value


def test_a_place_without_a_value_is_a_bug(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        template.filled("$REEF_X", {}, tmp_path)


def test_a_truth_inside_a_text_is_a_number() -> None:
    assert template.in_text("?new=$REEF_NEW&old=$REEF_OLD", {"REEF_NEW": True, "REEF_OLD": False}) == "?new=1&old=0"


def test_keys_have_places_too() -> None:
    assert template.in_data({"x": {"$REEF_M": 1}}, {"REEF_M": "default"}) == {"x": {"default": 1}}
