"""Whether a tree differs from its commit, compared with what git itself says, in folders that nobody should trust."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from adapters.checkout import commit_of
from daemon.core.paths import Home
from daemon.server.checkouts import Checkouts, dirty
from daemon.server.identity import identify
from tests.adapters.test_checkout import git
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.provider import Turn, running_provider


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with two files in a folder whose name is odd."""
    folder = tmp_path / "a b ü"
    (folder / "inner").mkdir(parents=True)
    git(folder, "init", "-q")
    for name in ("one", "inner/two"):
        (folder / name).write_text(name)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def head(folder: Path) -> str:
    commit = commit_of(folder)
    assert commit is not None
    return commit


def asked(folder: Path) -> bool | None:
    """And it is what `git describe --dirty` says there."""
    said = dirty(folder, head(folder))
    assert said is git(folder, "describe", "--always", "--dirty").endswith("-dirty")
    return said


def test_a_tree_as_it_was_committed(clone: Path) -> None:
    assert asked(clone) is False
    assert asked(clone / "inner") is False
    (clone / "new").write_text("git does not know it")
    assert asked(clone) is False
    os.utime(clone / "one", (1, 1))  # the same content
    before = (clone / ".git" / "index").read_bytes()
    assert dirty(clone, head(clone)) is False
    assert (clone / ".git" / "index").read_bytes() == before  # nothing of theirs is written


@pytest.mark.parametrize("change", ["written", "removed", "staged", "added", "mode"])
def test_a_tree_that_differs(clone: Path, change: str) -> None:
    match change:
        case "removed":
            (clone / "one").unlink()
        case "mode":
            (clone / "one").chmod(0o755)
        case "added":
            (clone / "new").write_text("x")
            git(clone, "add", "new")
        case _:
            (clone / "one").write_text("other")
    if change == "staged":
        git(clone, "add", "one")
        (clone / "one").write_text("one")
    assert asked(clone) is True


def test_a_worktree_and_a_submodule(clone: Path, tmp_path: Path) -> None:
    git(clone, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    git(clone, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(clone), "sub")
    git(clone, "commit", "-q", "-m", "two")
    for folder in (tmp_path / "tree", clone / "sub"):
        assert asked(folder) is False
        (folder / "one").write_text("other")
        assert asked(folder) is True


def test_hashes_of_the_other_kind(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256")
    (tmp_path / "one").write_text("one")
    git(tmp_path, "add", "one")
    git(tmp_path, "commit", "-q", "-m", "one")
    assert asked(tmp_path) is False
    (tmp_path / "one").write_text("two")
    assert asked(tmp_path) is True


def test_it_is_about_the_commit_that_was_declared(clone: Path) -> None:
    first = head(clone)
    (clone / "one").write_text("other")
    git(clone, "commit", "-q", "-a", "-m", "two")
    assert (dirty(clone, first), dirty(clone, head(clone))) == (True, False)


def test_what_cannot_be_told(clone: Path, tmp_path: Path) -> None:
    assert dirty(tmp_path, "0" * 40) is None
    assert dirty(clone, "0" * 40) is None
    assert dirty(clone, "--help") is None
    assert dirty(Path("a b"), head(clone)) is None
    assert dirty(Path("/nul\0"), head(clone)) is None
    (clone / ".git" / "index").write_bytes(b"torn")
    assert dirty(clone, head(clone)) is None


def test_it_takes_no_longer_than_it_may(clone: Path) -> None:
    commit = head(clone)
    (clone / ".git" / "index").unlink()
    os.mkfifo(clone / ".git" / "index")
    begun = time.monotonic()
    assert dirty(clone, commit, seconds=0.3) is None
    assert time.monotonic() - begun < 10


def test_nothing_that_the_folder_names_is_run(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent in a sandbox may write all of it; what asks is the daemon, which is in none."""
    program, ran = tmp_path / "program", tmp_path / "ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "filter.f.clean", "filter.f.process", "core.sshCommand", "diff.external"):
        git(clone, "config", name, str(program))
    for place in (clone / ".gitattributes", clone / ".git" / "info" / "attributes"):
        place.write_text("* filter=f\n")
    shutil.copy(program, clone / ".git" / "hooks" / "post-index-change")
    own = tmp_path / "gitconfig"
    own.write_text(f"[core]\nfsmonitor = {program}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    (clone / "one").write_text("eno")  # of the same size: it has to be read
    assert dirty(clone, head(clone)) is True
    assert not ran.exists()
    subprocess.run(["git", "status"], cwd=clone, capture_output=True, check=True)
    assert ran.exists()  # by git as it comes


def declared(folder: Path, run: str = "run_1", **more: str) -> dict[str, str]:
    said = {"x-reef-cwd": quote(os.fsencode(folder)), "x-reef-commit": head(folder), "x-reef-tag-run": run}
    return {**said, **{f"x-reef-{name}": value for name, value in more.items()}}


def test_a_run_is_looked_at_once(clone: Path) -> None:
    async def looked() -> None:
        known = Checkouts()
        first = known.of(identify(declared(clone)))
        assert first.dirty is None  # a request waits for nothing
        async with asyncio.timeout(30):
            while first.dirty is None:
                await asyncio.sleep(0.01)
        (clone / "one").write_text("the agent's work")
        assert known.of(identify(declared(clone))) is first
        second = known.of(identify(declared(clone, "run_2")))
        async with asyncio.timeout(30):
            while second.dirty is None:
                await asyncio.sleep(0.01)
        assert (first.dirty, second.dirty) == (False, True)
        assert known.of(identify({"x-reef-cwd": str(clone), "x-reef-commit": head(clone)})).dirty is None

    asyncio.run(looked())


def test_who_names_a_run_with_each_request_is_not_followed(clone: Path) -> None:
    async def looked() -> list[bool | None]:
        known = Checkouts()
        found = [known.of(identify(declared(clone, f"run_{n}"))) for n in range(100)]
        async with asyncio.timeout(60):
            while found[31].dirty is None:
                await asyncio.sleep(0.01)
        return [one.dirty for one in found]

    assert asyncio.run(looked()) == [False] * 32 + [None] * 68


@pytest.fixture
def daemon(reef_home: Home) -> Iterator[RunningDaemon]:
    with running_provider([Turn("It rains.")]) as provider, running_daemon(reef_home, provider.config()) as running:
        yield running


def test_it_is_in_the_record_and_in_the_trace(daemon: RunningDaemon, clone: Path) -> None:
    (clone / "one").write_text("other")
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "weather?"}]}
    told = declared(clone)

    def record() -> Any:
        _, headers, _ = daemon.post("/v1/chat/completions", asked, **told)
        return daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")

    found = until(lambda: (one := record())["dirty"] is not None and one, "git has answered")
    assert (found["commit"], found["dirty"]) == (head(clone), True)
    session = daemon.get(f"/reef/traces/{found['session']}")["session"]
    assert (session["commit"], session["dirty"], session["cwd"]) == (head(clone), True, str(clone))
