"""Pushing to a remote of a person's: forward only, weights with it, nothing of theirs run or asked."""

import subprocess
from pathlib import Path

import pytest

from daemon.core.errors import Conflict, RemoteError, StoreError, UsageError
from daemon.store.releases import Releases
from daemon.store.releases.remote import Pushed
from tests.fakes.releases import ACCEPTED, candidate, released, write_weights


def git(*words: str | Path) -> str:
    return subprocess.run(["git", *words], capture_output=True, check=True, text=True).stdout.strip()


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    path = tmp_path / "a remote.git"
    git("init", "--quiet", "--bare", path)
    return path


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_releases_and_weights_get_there_and_a_plain_clone_has_them(
    releases: Releases, remote: Path, tmp_path: Path, form: str
) -> None:
    address = form.format(str(remote).replace(" ", "%20") if form.startswith("file") else remote)
    assert releases.push(address) == Pushed(address, (), 0), "nothing is released yet"
    first = released(releases, "job_1", weights=write_weights(tmp_path / "w"))
    released(releases, "job_2", scenario="team/api")
    waits = releases.propose(candidate("job_3", first.id), ACCEPTED)
    assert releases.push(address) == Pushed(address, ("default", "team/api"), 2)
    assert git("-C", remote, "for-each-ref", "--format=%(refname) %(objectname)").split("\n") == [
        f"refs/heads/default {first.commit}",
        f"refs/heads/team%2Fapi {releases.standing('team/api').release.commit}",  # type: ignore[union-attr]
    ]
    copy = tmp_path / "copy"
    git("clone", "--quiet", "--branch", "default", remote.as_uri(), copy)
    git("-C", copy, "lfs", "install", "--local")
    git("-C", copy, "lfs", "pull")
    assert (copy / "weights/adapter.gguf").read_bytes() == (tmp_path / "w/adapter.gguf").read_bytes()
    second = releases.publish(waits, first.id)
    assert releases.push(address).large_files == 0
    assert git("-C", remote, "rev-parse", "default") == second.commit


def test_git_lfs_takes_weights_where_there_is_no_folder(releases: Releases, remote: Path, tmp_path: Path) -> None:
    released(releases, "job_1", weights=write_weights(tmp_path / "w"))
    pointers = [releases._lfs.put(tmp_path / "w" / "adapter.gguf")]
    assert releases._upload(pointers, remote.as_uri(), releases._settings()) == 1
    assert [path.name for path in (remote / "lfs/objects").glob("??/??/*")] == [pointers[0].oid]


def test_without_git_lfs_weights_say_what_they_need_and_text_does_not(
    releases: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_git = tmp_path / "bin"
    only_git.mkdir()
    found = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout.strip()
    (only_git / "git").symlink_to(found)
    monkeypatch.setenv("PATH", str(only_git))
    first = released(releases, "job_1")
    with pytest.raises(RemoteError, match="cannot be reached"):  # nothing listens there
        releases.push("https://127.0.0.1:1/x.git")
    released(releases, "job_2", first.id, weights=write_weights(tmp_path / "w"))
    with pytest.raises(StoreError, match="the weights need git-lfs") as missing:
        releases.push("https://127.0.0.1:1/x.git")
    assert "git-lfs.com" in str(missing.value.hint)


def test_what_is_there_is_never_overwritten(releases: Releases, remote: Path, tmp_path: Path) -> None:
    released(releases, "job_1")
    releases.push(str(remote))
    before = git("-C", remote, "rev-parse", "default")
    releases.archive("default")
    released(releases, "job_2")
    with pytest.raises(Conflict, match="nothing there was overwritten"):
        releases.push(str(remote))
    assert git("-C", remote, "rev-parse", "default") == before


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("", "is no Git remote"),
        ("--receive-pack=touch x", "is no Git remote"),
        ("ext::sh -c touch% x", "is no Git remote"),
        ("a\x1b[31m", "is no Git remote"),
        ("https://me:secret@example.com/x.git", "holds a name, a password or a token"),
        ("/nowhere/at/all", "is no Git repository"),
    ],
)
def test_what_is_no_remote_is_refused(releases: Releases, address: str, what: str) -> None:
    released(releases, "job_1")
    with pytest.raises(UsageError, match=what) as refused:
        releases.push(address)
    assert "secret" not in refused.value.message


def test_of_a_persons_configuration_only_credentials_are_read(
    releases: Releases, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUGS B209: it is read, never written."""
    hook = tmp_path / "hooks" / "pre-push"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    hook.chmod(0o755)
    said = (
        f"[core]\n\thooksPath = {hook.parent}\n[credential]\n\thelper = store\n"
        '[credential "https://x.example"]\n\tusername = me\n'
        f'[url "file://{tmp_path}/elsewhere"]\n\tinsteadOf = file://\n'
    )
    config = tmp_path / ".gitconfig"
    config.write_text(said)
    monkeypatch.setenv("HOME", str(tmp_path))
    system = tmp_path / "gitconfig"
    system.write_text('[credential "https://y.example"]\n\thelper = osxkeychain\n')
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(system))
    released(releases, "job_1")
    assert releases.push(remote.as_uri()).scenarios == ("default",)
    assert not (tmp_path / "ran").exists()
    assert config.read_text() == said
    told = releases._settings()
    count = int(told["GIT_CONFIG_COUNT"])
    assert {told[f"GIT_CONFIG_KEY_{n}"]: told[f"GIT_CONFIG_VALUE_{n}"] for n in range(count)} == {
        "credential.helper": "store", "credential.https://x.example.username": "me",
        "credential.https://y.example.helper": "osxkeychain",
    }  # fmt: skip
