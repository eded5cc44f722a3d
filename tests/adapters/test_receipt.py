"""The receipt: checkable without Reef, and the only thing an uninstall believes."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from adapters import apply, receipt
from adapters.plan import InstallPlan
from daemon.core.errors import NotFound
from tests.adapters.conftest import Apply, make_plan, tree


def test_it_lists_every_file_and_sha256sum_can_check_it(plan: InstallPlan, install: Apply) -> None:
    install()
    found = receipt.read(plan.home, "agent")
    assert found is not None
    there = {path for path, (_, content) in tree(plan.home).items() if content is not None}
    assert {*found.files, *found.links, plan.receipt, plan.lock} == there
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "--quiet", "-c", plan.receipt], cwd=plan.home, check=True)


def test_uninstall_leaves_the_home_as_it_was(tmp_path: Path, npm: Path, user: Path) -> None:
    """BUGS B109."""
    plan = make_plan(tmp_path / "reef", npm, link=True)
    plan.home.mkdir(mode=0o700)
    (plan.home / "agents").mkdir(mode=0o700)
    (plan.home / "store").mkdir()
    (plan.home / "run").mkdir(mode=0o700)
    (plan.home / plan.lock).touch(0o600)  # it stays: see daemon.core.locks
    before = tree(plan.home), tree(user)
    apply.apply(plan, lambda _: None)
    assert receipt.uninstall(plan.home, "agent") == []
    assert (tree(plan.home), tree(user)) == before


def test_what_a_person_changed_stays_and_is_named(plan: InstallPlan, install: Apply) -> None:
    install()
    changed = plan.home / "bin" / "reef-agent"
    changed.write_text("#!/bin/sh\n# mine\n")
    new = plan.root / "node_modules" / "the-agent" / "mine.txt"
    new.write_text("mine")
    assert receipt.uninstall(plan.home, "agent") == [str(changed)]
    left = {path for path, (_, content) in tree(plan.home).items() if content is not None}
    assert left == {"bin/reef-agent", str(new.relative_to(plan.home)), plan.lock}


def test_a_link_that_leads_elsewhere_now_stays(tmp_path: Path, npm: Path, user: Path) -> None:
    plan = make_plan(tmp_path / "reef", npm, link=True)
    apply.apply(plan, lambda _: None)
    link = user / ".local" / "bin" / "reef-agent"
    link.unlink()
    link.symlink_to("/elsewhere")
    receipt.uninstall(plan.home, "agent")
    assert str(link.readlink()) == "/elsewhere"


def test_what_a_person_deleted_is_no_trouble(plan: InstallPlan, install: Apply) -> None:
    install()
    shutil.rmtree(plan.root / "node_modules")
    assert receipt.uninstall(plan.home, "agent") == []
    assert not plan.root.exists()


def test_thousands_of_files_go_and_the_folder_with_a_changed_one_stays(plan: InstallPlan, install: Apply) -> None:
    deep = plan.root / "node_modules" / "deep"
    for number in range(2000):
        path = deep / f"{number % 40}" / "lib" / f"{number}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(number))
    install()
    changed, empty = deep / "7" / "lib" / "47.js", deep / "empty"
    changed.write_text("mine")
    empty.mkdir()
    assert receipt.uninstall(plan.home, "agent") == [str(changed)]
    assert {path for path in deep.rglob("*") if not path.is_dir()} == {changed}
    assert {path.name for path in deep.iterdir()} == {"7", "empty"}


def test_a_file_in_a_symlinks_place_is_not_followed(plan: InstallPlan, install: Apply, tmp_path: Path) -> None:
    install()
    outside = tmp_path / "outside"
    outside.write_text(plan.files[0].text)
    planned = plan.home / plan.files[0].path
    planned.unlink()
    planned.symlink_to(outside)
    receipt.uninstall(plan.home, "agent")
    assert outside.read_text() == plan.files[0].text


def test_nothing_installed(tmp_path: Path) -> None:
    assert receipt.read(tmp_path, "agent") is None
    with pytest.raises(NotFound, match="agent is not installed"):
        receipt.uninstall(tmp_path, "agent")


def test_erasing_takes_read_only_folders_too(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    inner.chmod(0o500)
    inner.parent.chmod(0o500)
    receipt.erase(tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_what_somebody_wrote_into_it_takes_nothing_else_away(
    tmp_path: Path, plan: InstallPlan, user: Path, install: Apply
) -> None:
    install()
    mine, link = plan.home / "store.db", user / ".local" / "bin" / "mine"
    mine.write_text("mine")
    link.symlink_to(mine)
    digest = hashlib.sha256(b"mine").hexdigest()
    with (plan.home / plan.receipt).open("ab") as file:
        for path in (mine, "store.db", "agents/agent/../../store.db", "bin/../store.db", "agents/other/x"):
            file.write(f"{digest}  {path}\n".encode())
        file.write(f"# link\t{mine}\tstore\n# link\t{tmp_path}\t{link}\nrubbish\n".encode() + b"\xff\n")
    link.unlink()
    link.symlink_to(tmp_path)
    assert receipt.uninstall(plan.home, "agent") == []
    assert (mine.read_text(), link.is_symlink(), plan.root.exists()) == ("mine", True, False)


def test_names_that_are_no_text_or_look_like_two_lines(plan: InstallPlan, install: Apply) -> None:
    (plan.root / "node_modules").mkdir(parents=True)
    for name in (b"\xff", "a\u2028b\x0bc\x85d".encode()):
        Path(os.fsdecode(os.fsencode(plan.root / "node_modules") + b"/" + name)).write_text("x")
    install()
    assert receipt.uninstall(plan.home, "agent") == []
    assert not plan.root.exists()


def test_what_cannot_be_read_stays_and_the_rest_goes(plan: InstallPlan, install: Apply) -> None:
    install()
    folder = plan.root / "node_modules" / "the-agent" / "lib"
    unread = folder / "file with spaces.js"
    unread.chmod(0)
    kept = receipt.uninstall(plan.home, "agent")
    assert kept == ([] if os.access(unread, os.R_OK) or not unread.exists() else [str(unread)])
    assert not (plan.home / plan.receipt).exists()


def test_of_a_link_only_the_link_is_erased(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o755)
    (tmp_path / "mine" / "file").touch()
    (tmp_path / "link").symlink_to("mine")
    receipt.erase(tmp_path / "link")
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["mine", "file"]
