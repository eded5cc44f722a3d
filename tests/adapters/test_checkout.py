"""The commit of a working directory, compared with what git itself says."""

import os
import subprocess
from pathlib import Path

import pytest

from adapters.checkout import commit_of


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder


def test_what_git_says(clone: Path) -> None:
    inner = clone / "a" / "b"
    inner.mkdir(parents=True)
    assert commit_of(clone) == commit_of(inner) == git(clone, "rev-parse", "HEAD")


def test_packed(clone: Path) -> None:
    git(clone, "pack-refs", "--all")
    assert commit_of(clone) == git(clone, "rev-parse", "HEAD")


def test_detached(clone: Path) -> None:
    git(clone, "checkout", "-q", "--detach")
    assert commit_of(clone) == git(clone, "rev-parse", "HEAD")


def test_a_worktree(clone: Path, tmp_path: Path) -> None:
    git(clone, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    git(tmp_path / "tree", "commit", "-q", "--allow-empty", "-m", "two")
    assert commit_of(tmp_path / "tree") == git(tmp_path / "tree", "rev-parse", "HEAD") != commit_of(clone)


def test_none(tmp_path: Path) -> None:
    assert commit_of(tmp_path) is None
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init", "-q")
    assert commit_of(tmp_path / "new") is None


@pytest.mark.parametrize("what", ["HEAD", "packed-refs", "refs"])
def test_a_strangers_folder_does_not_hold_the_start(tmp_path: Path, what: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs\n")
    (tmp_path / ".git" / what).unlink(missing_ok=True)
    os.mkfifo(tmp_path / ".git" / what)
    assert commit_of(tmp_path) is None


@pytest.mark.parametrize("head", ["", "ref: ../../etc/passwd", "x" * 40, "\udcff"])
def test_a_head_that_is_none(tmp_path: Path, head: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(head.encode("utf-8", "surrogateescape"))
    assert commit_of(tmp_path) is None
