"""Pushing to a Git server, over HTTP and ssh: what it takes arrives, what it refuses is said and changes nothing."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.errors import Conflict, ReefError, RemoteError
from daemon.store.releases import Releases
from tests.fakes.daemon import until
from tests.fakes.githost import SSHD, TOKEN, Host, serving, ssh_serving
from tests.fakes.releases import released, write_weights

COVERS = ("daemon/store/releases/remote.py",)


def git(*words: str | Path) -> str:
    return subprocess.run(["git", *words], capture_output=True, check=True, text=True).stdout.strip()


def branches(repository: Path) -> list[str]:
    return git("-C", repository, "for-each-ref", "--format=%(refname:short) %(objectname)").split("\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the server has its repositories: one, empty."""
    git("init", "--quiet", "--bare", tmp_path / "srv" / "reef.git")
    return tmp_path / "srv"


@pytest.fixture
def host(root: Path) -> Iterator[Host]:
    with serving(root) as running:
        yield running


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person with a home of their own, where anything that asks leaves a mark; returns their ``.gitconfig``."""
    asks = tmp_path / "asks"
    asks.write_text(f"#!/bin/sh\ntouch '{tmp_path}/asked'\necho {TOKEN}\n")
    asks.chmod(0o755)
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(name, str(asks))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".gitconfig"


def known(person: Path, host: Host) -> None:
    """The person's git has the token."""
    kept = person.with_name("credentials")
    kept.write_text(host.url.replace("://", f"://me:{TOKEN}@") + "\n")
    kept.chmod(0o600)
    person.write_text(f"[credential]\n\thelper = store --file '{kept}'\n")


def refused(releases: Releases, remote: str, kind: type[ReefError], why: str) -> ReefError:
    with pytest.raises(kind, match=why) as told:
        releases.push(remote)
    assert TOKEN not in f"{told.value.message}{told.value.hint}"
    assert told.value.hint
    return told.value


# -- HTTP -----------------------------------------------------------------------------------------------


def test_over_http_releases_and_weights_arrive_and_a_clone_has_them(
    releases: Releases, host: Host, root: Path, person: Path, tmp_path: Path
) -> None:
    known(person, host)
    first = released(releases, "job_1", weights=write_weights(tmp_path / "w"))
    remote = f"{host.url}/reef.git"
    assert releases.push(remote).large_files == 2
    assert branches(root / "reef.git") == [f"default {first.commit}"]
    git("clone", "--quiet", "--branch", "default", remote, tmp_path / "copy")
    git("-C", tmp_path / "copy", "lfs", "install", "--local")
    git("-C", tmp_path / "copy", "lfs", "pull")
    assert (tmp_path / "copy/weights/adapter.gguf").read_bytes() == (tmp_path / "w/adapter.gguf").read_bytes()
    second = released(releases, "job_2", first.id)
    host.asked.clear()
    releases.push(remote)
    assert branches(root / "reef.git") == [f"default {second.commit}"]
    assert not [path for method, path in host.asked if method == "PUT"], "what is there is not brought again"
    assert not (tmp_path / "asked").exists()


def test_without_a_token_it_is_said_and_nobody_is_asked(
    releases: Releases, host: Host, root: Path, tmp_path: Path
) -> None:
    released(releases, "job_1", weights=write_weights(tmp_path / "w"))
    refused(releases, f"{host.url}/reef.git", RemoteError, "lets nobody in")
    assert (host.asked, branches(root / "reef.git")) == ([], [""])
    assert not (tmp_path / "asked").exists()


def test_a_wrong_token_is_said_and_stays_secret(releases: Releases, host: Host, person: Path) -> None:
    wrong = f"{TOKEN}x"
    person.write_text(f'[credential]\n\thelper = "!f() {{ echo username=me; echo password={wrong}; }}; f"\n')
    released(releases, "job_1")
    refused(releases, f"{host.url}/reef.git", RemoteError, "lets nobody in")


def test_one_branch_that_went_another_way_holds_all_back(
    releases: Releases, host: Host, root: Path, person: Path, tmp_path: Path
) -> None:
    known(person, host)
    remote = f"{host.url}/reef.git"
    released(releases, "job_1")
    releases.push(remote)
    before = branches(root / "reef.git")
    releases.archive("default")
    released(releases, "job_2", weights=write_weights(tmp_path / "w"))
    released(releases, "job_3", scenario="other")
    refused(releases, remote, Conflict, "nothing there was overwritten")
    assert branches(root / "reef.git") == before
    assert host.objects == {}, "gigabytes do not go where nothing will name them"


def test_a_server_without_git_lfs_is_told_apart(
    releases: Releases, host: Host, root: Path, person: Path, tmp_path: Path
) -> None:
    known(person, host)
    host.lfs = False
    first = released(releases, "job_1")
    releases.push(f"{host.url}/reef.git")
    released(releases, "job_2", first.id, weights=write_weights(tmp_path / "w"))
    refused(releases, f"{host.url}/reef.git", RemoteError, "keeps no large files")
    assert branches(root / "reef.git") == [f"default {first.commit}"], "no release is there without its weights"


def test_a_server_that_turns_it_down_is_told_with_its_reason(
    releases: Releases, host: Host, root: Path, person: Path
) -> None:
    known(person, host)
    hook = root / "reef.git/hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho 'no more room' >&2\nexit 1\n")
    hook.chmod(0o755)
    released(releases, "job_1")
    refused(releases, f"{host.url}/reef.git", RemoteError, "turned the push down")
    refused(releases, f"{host.url}/other.git", RemoteError, "no such repository")
    host.status = 503
    refused(releases, f"{host.url}/reef.git", RemoteError, "503")
    assert branches(root / "reef.git") == [""]


def test_a_server_that_is_not_there_or_says_nothing(releases: Releases, host: Host) -> None:
    released(releases, "job_1")
    refused(releases, "http://127.0.0.1:1/reef.git", RemoteError, "cannot be reached")
    refused(releases, "https://no-such-host.invalid/reef.git", RemoteError, "cannot be reached")
    host.silent, releases.silence = True, 1
    refused(releases, f"{host.url}/reef.git", RemoteError, "cannot be reached")


def test_a_helper_that_never_ends_is_ended(releases: Releases, host: Host, person: Path, tmp_path: Path) -> None:
    """Its own child too: nothing that git started goes on behind the person's back."""
    os.mkfifo(tmp_path / "fifo")
    person.write_text(f"[credential]\n\thelper = \"!echo $$ >'{tmp_path}/pid'; exec cat '{tmp_path}/fifo'; :\"\n")
    released(releases, "job_1")
    releases.silence = 1
    refused(releases, f"{host.url}/reef.git", RemoteError, "has not ended for 2 s")
    helper = Path("/proc", (tmp_path / "pid").read_text().strip(), "cmdline")
    until(lambda: not helper.exists() or not helper.read_bytes(), "the helper's end", 10)


@pytest.mark.parametrize("remote", [f"https://{TOKEN}@x.example/x.git", f"https://x.example/x.git?token={TOKEN}"])
def test_an_address_with_a_token_is_refused_and_not_repeated(releases: Releases, remote: str) -> None:
    refused(releases, remote, ReefError, "holds a name, a password or a token")


def test_what_a_persons_git_would_run_besides_is_not_run(
    releases: Releases, host: Host, person: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUGS B209: no hook, no transport of somebody's own, no other ssh, no other address."""
    known(person, host)
    program = tmp_path / "bin" / "git-remote-mine"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    program.chmod(0o755)
    (program.parent / "pre-push").symlink_to(program)
    person.write_text(
        person.read_text()
        + f"[core]\n\thooksPath = {program.parent}\n\taskPass = {program}\n\tsshCommand = {program}\n"
        f"[lfs]\n\tstandalonetransferagent = mine\n[lfs \"customtransfer.mine\"]\n\tpath = {program}\n"
        f'[url "mine://x"]\n\tinsteadOf = {host.url}\n'
    )  # fmt: skip
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    released(releases, "job_1", weights=write_weights(tmp_path / "w"))
    assert releases.push(f"{host.url}/reef.git").large_files == 2
    refused(releases, "mine://x/reef.git", RemoteError, "not allowed")
    refused(releases, "ssh://127.0.0.1:1/reef.git", RemoteError, "cannot be reached")
    assert not (tmp_path / "ran").exists()


# -- ssh ------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An sshd, and an ``ssh`` that takes its settings from ``tmp_path/ssh_config`` as others from ~/.ssh."""
    if SSHD is None or (os.geteuid() == 0 and not Path("/run/sshd").is_dir()):
        pytest.skip("no sshd here: apt install openssh-server")
    with ssh_serving(tmp_path, free_port) as address:
        wrapper = tmp_path / "bin" / "ssh"
        wrapper.parent.mkdir()
        found = subprocess.run(
            ["sh", "-c", "command -v ssh"], capture_output=True, text=True, check=True
        ).stdout.strip()
        wrapper.write_text(f"#!/bin/sh\nexec {found} -F '{tmp_path}/ssh_config' \"$@\"\n")
        wrapper.chmod(0o755)
        monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
        ssh_config(tmp_path)
        yield address


def ssh_config(folder: Path, key: str = "key", known: str = "known") -> None:
    said = f"IdentityFile {folder / key}\nIdentitiesOnly yes\nUserKnownHostsFile {folder / known}\n"
    (folder / "ssh_config").write_text(f"{said}GlobalKnownHostsFile none\n")


def test_over_ssh_releases_arrive_and_what_is_refused_is_said(
    releases: Releases, root: Path, server: str, tmp_path: Path
) -> None:
    remote = f"ssh://{server}{root}/reef.git"
    first = released(releases, "job_1")
    releases.push(remote)
    assert branches(root / "reef.git") == [f"default {first.commit}"]
    ssh_config(tmp_path, key="stranger")
    refused(releases, remote, RemoteError, "lets nobody in")
    ssh_config(tmp_path, known="nobody")
    refused(releases, remote, RemoteError, "does not know that server's key")
    ssh_config(tmp_path)
    refused(releases, f"ssh://{server}{root}/other.git", RemoteError, "no such repository")
    released(releases, "job_2", first.id, weights=write_weights(tmp_path / "w"))
    refused(releases, remote, RemoteError, "keeps no large files")
    assert branches(root / "reef.git") == [f"default {first.commit}"]
    releases.archive("default")
    released(releases, "job_3")
    refused(releases, remote, Conflict, "nothing there was overwritten")
    assert branches(root / "reef.git") == [f"default {first.commit}"]
    assert not (tmp_path / "asked").exists()
