"""Releases on the shelf: whole or not at all, read-only, replaced when tampered with, pruned when nobody reads them."""

import os
from pathlib import Path

import pytest

from adapters import shelf
from adapters.delivery import Delivery


def base(scenario: str = "default") -> Delivery:
    return Delivery("base", 0, scenario, {}, None, None, None, "", "")


def put(place: Path, told: Delivery | None = None) -> Path:
    return shelf.put(place, told or base(), {"a/b.md": "text\r\n", "c.md": "more"})


def test_a_release_is_read_only_and_made_once(tmp_path: Path) -> None:
    """BUGS B217: nothing is ever rewritten under a session."""
    folder = put(tmp_path / "shelf")
    assert (folder / "a" / "b.md").read_bytes() == b"text\r\n"
    modes = {path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")]}
    assert modes == {0o400, 0o500}
    inode = folder.stat().st_ino
    assert put(tmp_path / "shelf") == folder
    assert folder.stat().st_ino == inode


@pytest.mark.parametrize("damage", ["changed", "added", "gone", "link"])
def test_one_that_was_tampered_with_is_made_again(tmp_path: Path, damage: str) -> None:
    folder = put(tmp_path / "shelf")
    for path in (folder, folder / "a", folder / "c.md"):
        path.chmod(0o700)
    if damage == "changed":
        (folder / "c.md").write_text("evil")
    elif damage == "added":
        (folder / "a" / "evil.md").write_text("evil")
    elif damage == "gone":
        (folder / "c.md").unlink()
    else:
        (folder / "c.md").unlink()
        (folder / "c.md").symlink_to("/etc/passwd")
    again = put(tmp_path / "shelf")
    assert again == folder
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) == [
        ".release.json",
        "a",
        "a/b.md",
        "c.md",
    ]
    assert (folder / "c.md").read_text() == "more"


def test_another_text_is_another_folder(tmp_path: Path) -> None:
    first = put(tmp_path / "shelf")
    second = shelf.put(tmp_path / "shelf", base(), {"a/b.md": "other"})
    assert first != second
    assert (first / "a" / "b.md").read_bytes() == b"text\r\n"


def test_a_start_that_was_killed_leaves_nothing_that_counts(tmp_path: Path) -> None:
    folder = put(tmp_path / "one")
    half = tmp_path / "two" / f".new-{folder.name}"
    (half / "a").mkdir(parents=True)
    (half / "a" / "junk").write_text("x")
    assert put(tmp_path / "two").name == folder.name
    assert not half.exists()
    assert not list((tmp_path / "two").rglob("junk"))


def test_found_again_for_its_scenario_only(tmp_path: Path) -> None:
    put(tmp_path / "shelf", base("work"))
    assert shelf.find(tmp_path / "shelf", "base", "work") == base("work")
    assert shelf.find(tmp_path / "shelf", "base", "default") is None
    assert shelf.find(tmp_path / "shelf", "r1-00000000", "work") is None


def test_used_ones_stay_and_three_more(tmp_path: Path) -> None:
    """BUGS B216: what a running session reads stays, however many releases come."""
    place = tmp_path / "shelf"
    folders = [put(place, base(f"s{i}")) for i in range(8)]
    for age, folder in enumerate(folders):
        os.utime(folder, (1000 + age, 1000 + age))
    (place / ".new-cut").mkdir()
    shelf.prune(place, {folders[0].name, folders[7].name})
    left = {path.name for path in place.iterdir()}
    assert left == {folders[i].name for i in (0, 4, 5, 6, 7)}


def test_another_scenarios_release_stays(tmp_path: Path) -> None:
    place = tmp_path / "shelf"
    told = base()._replace(release_id="r1-00000000")
    other = put(place, told)
    os.utime(other, (1, 1))
    for i in range(5):
        put(place, base(f"s{i}"))
    shelf.prune(place, (), {"r1-00000000"})
    assert other.is_dir()
    assert len(list(place.iterdir())) == 4
    shelf.prune(place, ())
    assert not other.exists()


def test_a_changed_one_is_told_from_others(tmp_path: Path) -> None:
    place = tmp_path / "shelf"
    assert shelf.changed(place) == set()
    put(place)
    folder = put(place, base("work"))
    assert folder == shelf.named(place, base("work"), {"a/b.md": "text\r\n", "c.md": "more"})
    (place / ".new-cut").mkdir()
    assert shelf.changed(place) == set()
    (folder / "c.md").chmod(0o600)
    (folder / "c.md").write_text("mine")
    assert shelf.changed(place) == {folder}


def test_an_empty_shelf_needs_no_pruning(tmp_path: Path) -> None:
    shelf.prune(tmp_path / "none", set())
    assert not (tmp_path / "none").exists()


def test_what_is_no_release_is_not_pruned(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    folder = put(tmp_path)
    shelf.prune(tmp_path, (), spared=0)
    assert ([path.name for path in tmp_path.iterdir()], folder.exists()) == (["mine"], False)
