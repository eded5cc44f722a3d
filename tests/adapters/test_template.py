"""Templates: values of any type in JSON, texts elsewhere, and never a template in a value."""

import json
from pathlib import Path

import pytest

from adapters import template
from adapters.template import Template


@pytest.fixture
def made(tmp_path: Path) -> Template:
    (tmp_path / "x.json").write_text(
        '{"a": "$REEF_A", "b": "is $REEF_B.", "list": ["$REEF_A", 1], "gone": "$REEF_NONE", "own": "$HOME $REEFER"}'
    )
    (tmp_path / "x.md").write_text("A: $REEF_B $OTHER\n")
    return Template(tmp_path, (), (), (), (), "skills", "prompts", {})


def test_json_takes_values_of_any_type(made: Template) -> None:
    text = made.filled("x.json", {"REEF_A": {"k": [1]}, "REEF_B": 'it\'s "b" $REEF_A', "REEF_NONE": None})
    assert json.loads(text) == {
        "a": {"k": [1]},
        "b": 'is it\'s "b" $REEF_A.',
        "list": [{"k": [1]}, 1],
        "own": "$HOME $REEFER",
    }


def test_text(made: Template) -> None:
    assert made.filled("x.md", {"REEF_B": "$REEF_A\\1"}) == "A: $REEF_A\\1 $OTHER\n"


def test_a_place_without_a_value_is_a_bug(made: Template) -> None:
    with pytest.raises(KeyError):
        made.filled("x.md", {})


def test_every_file_that_pis_manifest_names_is_there() -> None:
    pi = template.load("pi")
    for name in {*pi.release, *pi.session, *pi.seeds}:
        assert (pi.folder / name).is_file(), name
    assert set(pi.seeds) <= set(pi.shared)
    assert not {*pi.release, *pi.session} & set(pi.shared)
