"""What the palette offers and finds."""

import pytest

from reef_cli.commands import COMMANDS, Group
from reef_cli.tui.choices import Choice, choices, matching
from reef_cli.tui.keys import KEYS, Place, at
from reef_cli.tui.themes import THEMES


def offered(place: Place = Place.TRACES) -> list[Choice]:
    return choices(place, KEYS, lambda id: "no trace is selected" if id == "good" else None)


@pytest.mark.parametrize("place", list(Place))
def test_every_action_of_the_place_is_there_with_its_command(place: Place) -> None:
    found = {choice.value: choice for choice in offered(place) if choice.kind == "key"}
    assert set(found) == {key.id for key in at(place)} - {"palette"}
    assert all(found[key.id].twin == key.twin for key in at(place) if key.id in found)


def test_what_cannot_be_done_says_why() -> None:
    assert [choice.why for choice in offered() if choice.value == "good" and choice.kind == "key"] == [
        "no trace is selected"
    ]


def test_every_theme_and_every_command_is_there() -> None:
    found = offered()
    assert [choice.value for choice in found if choice.kind == "theme"] == list(THEMES)
    verbs = sum(len(entry.verbs) if isinstance(entry, Group) else 1 for entry in COMMANDS.values())
    assert len([choice for choice in found if choice.kind == "command"]) == verbs - 1  # all but tui


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("good answer", "reef good RECEIPT"),
        ("good", "reef good RECEIPT"),
        ("reef good", "reef good"),
        ("THEME blind", None),
        ("theme any", "reef tui --theme safe"),
        ("doctor", "reef doctor"),
        ("reef traces show ses_1 --full", "reef traces show ses_1 --full"),
        ("jobs show 'a b'", "reef jobs show 'a b'"),
        ("jobs show 'a b", None),
        ("\x1b[2J", None),
        ("note \x1b[2J", "reef note '\\x1b[2J'"),
    ],
)
def test_words_find_it(typed: str, first: str | None) -> None:
    found = matching(offered(), typed)
    assert (found[0].twin if found else None) == first


def test_what_is_typed_keeps_its_words() -> None:
    (first, *_) = matching(offered(), "reef note 'use uv' rec_1")
    assert (first.kind, first.value) == ("command", "note 'use uv' rec_1")
