"""What a person changed of rendered files stays theirs; what the agent put beside them is not taken for it."""

import json
from pathlib import Path

import pytest

from adapters import edits, session, shelf
from adapters.session import Place
from tests.adapters.test_shelf import base

FILES = {"AGENTS.md": "rules", "skills/a/SKILL.md": "a"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "agents" / "pi")


def kept(place: Place) -> dict[str, str]:
    found = place.edited.rglob("*") if place.edited.is_dir() else ()
    return {str(path.relative_to(place.edited)): path.read_text() for path in found if path.is_file()}


def ended(place: Place) -> Path:
    """The directory of a run that is over."""
    release = shelf.put(place.shelf, base(), FILES)
    directory = place.sessions / "run_1"
    (directory / "skills").mkdir(parents=True)
    (directory / "release").symlink_to(release)
    (directory / "AGENTS.md").symlink_to(release / "AGENTS.md")
    (directory / "skills" / "a").symlink_to(release / "skills" / "a")
    (directory / "own.json").write_text("{}")
    edits.remember(directory, ["own.json"])
    return directory


def test_nothing_is_kept_of_a_run_that_nobody_touched(place: Place) -> None:
    directory = ended(place)
    (directory / "log.txt").write_text("the agent's")
    (directory / "skills" / "system").mkdir()
    (directory / "skills" / "system" / "SKILL.md").write_text("the agent's")
    session.sweep(place)
    assert (kept(place), list(place.sessions.iterdir())) == ({}, [])


def test_what_stands_in_the_place_of_a_link_is_kept_and_a_file_with_another_text(place: Place) -> None:
    directory = ended(place)
    for name, text in (("AGENTS.md", "mine"), ("skills/a", "mine, too")):
        (directory / name).unlink()
        (directory / name).write_text(text)
    (directory / "own.json").write_text("[]")
    session.sweep(place)
    assert kept(place) == {"run_1/AGENTS.md": "mine", "run_1/skills/a": "mine, too", "run_1/own.json": "[]"}
    assert edits.kept(place.edited) == {place.edited / "run_1"}


def test_it_is_told_before_a_start_keeps_it_and_after(place: Place) -> None:
    directory = ended(place)
    assert session.edited(place) == []
    (directory / "own.json").write_text("[]")
    assert session.edited(place) == [directory / "own.json"]
    session.sweep(place)
    assert session.edited(place) == [place.edited / "run_1"]


@pytest.mark.parametrize("broken", ["{", None])
def test_a_run_that_says_nothing_of_its_files_is_swept(place: Place, broken: str | None) -> None:
    directory = ended(place)
    if broken is None:
        (directory / ".made.json").unlink()
    else:
        (directory / ".made.json").write_text(broken)
    (directory / "own.json").unlink()
    session.sweep(place)
    assert kept(place) == {}


def test_a_release_that_was_changed_is_kept_whenever_its_folder_goes(place: Place) -> None:
    for text in ("once", "again"):
        folder = shelf.put(place.shelf, base(), FILES)
        (folder / "AGENTS.md").chmod(0o600)
        (folder / "AGENTS.md").write_text(text)
    assert (shelf.put(place.shelf, base(), FILES) / "AGENTS.md").read_text() == "rules"
    folder.chmod(0o700)
    (folder / "mine.md").write_text("added")
    shelf.prune(place.shelf, (), spared=0)
    assert list(place.shelf.iterdir()) == []
    names = [folder.name, f"{folder.name}-2", f"{folder.name}-3"]
    found = kept(place)
    assert [found[f"{name}/AGENTS.md"] for name in names] == ["once", "again", "rules"]
    assert found[f"{names[2]}/mine.md"] == "added"
    assert json.loads(found[f"{names[0]}/.release.json"])["release_id"] == "base"


def test_a_release_that_nobody_touched_is_not(place: Place) -> None:
    shelf.put(place.shelf, base(), FILES)
    shelf.prune(place.shelf, (), spared=0)
    assert (list(place.shelf.iterdir()), edits.kept(place.edited)) == ([], set())
