"""The README's tables of agents, commands, fields and keys come from the code."""

from pathlib import Path

import pytest

from daemon.core import fields
from reef_cli.commands import COMMANDS, Group
from reef_cli.commands.__main__ import agents, table, updated, wrapped
from reef_cli.tui import keys

README = Path(__file__).parents[3] / "README.md"


def test_every_verb_has_a_row_with_its_arguments() -> None:
    rows = table().splitlines()[2:]
    assert len(rows) == sum(len(entry.verbs) if isinstance(entry, Group) else 1 for entry in COMMANDS.values())
    assert "| `reef note TEXT [RECORD]` | Say something about an answer. |" in rows


def test_only_what_stands_between_the_markers_changes() -> None:
    contents = {"agents": agents(), "wrapped": wrapped(), "commands": table()}
    contents |= {"fields": fields.markdown(), "keys": keys.markdown()}
    old = "".join(f"before {name}\n<!-- {name} -->\nold\n<!-- /{name} -->\nafter\n" for name in contents)
    new = "".join(
        f"before {name}\n<!-- {name} -->\n{text}\n<!-- /{name} -->\nafter\n" for name, text in contents.items()
    )
    assert updated(old) == new
    assert updated(new) == new


def test_markers_are_required() -> None:
    with pytest.raises(ValueError, match="no <!-- agents -->"):
        updated("nothing here")


def test_the_readme_is_current() -> None:
    text = README.read_text(encoding="utf-8")
    assert updated(text) == text, "python -m reef_cli.commands README.md"
