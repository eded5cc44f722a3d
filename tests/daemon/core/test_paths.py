"""One home, private, moved by one variable."""

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from daemon.core.errors import ConfigError
from daemon.core.paths import Home, NotPlain, home, open_plain, private_directory, sha256_of, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_one_variable_moves_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REEF_HOME", str(tmp_path / "x"))
    assert home() == Home(tmp_path / "x")
    monkeypatch.delenv("REEF_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home().root == tmp_path / ".reef"


@pytest.mark.parametrize("named", ["~/elsewhere", "relative"])
def test_the_variable_may_be_written_as_in_a_shell(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REEF_HOME", named)
    assert home().root == tmp_path / named.removeprefix("~/")


def test_everything_lies_in_the_home(tmp_path: Path) -> None:
    place = Home(tmp_path)
    names = ("config", "database", "models", "agents", "log", "lock", "start_lock", "state", "agent_token")
    assert all(tmp_path in getattr(place, name).parents for name in names)
    assert len({getattr(place, name) for name in names}) == len(names)


def test_prepared_directories_are_private(tmp_path: Path) -> None:
    place = Home(tmp_path / "new")
    place.prepare()
    place.prepare()
    assert {mode(path) for path in place.root.rglob("*")} | {mode(place.root)} == {0o700}


def test_an_open_directory_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    private_directory(tmp_path / "open")
    assert mode(tmp_path / "open") == 0o700


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(ConfigError, match=str(tmp_path / "x")):
        private_directory(tmp_path / "x")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_someone_elses_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, -1)
    with pytest.raises(ConfigError, match="belongs to user 12345"):
        private_directory(tmp_path / "theirs")


def test_a_long_home_gets_a_short_socket(tmp_path: Path) -> None:
    short, long = Home(Path("/h")), Home(tmp_path / ("x" * 120))
    assert short.socket == Path("/h/run/reef.sock")
    assert len(os.fsencode(long.socket)) <= 103
    assert long.socket == Home(long.root).socket
    assert long.socket != Home(tmp_path / ("y" * 120)).socket


def test_only_a_plain_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"x")
    with open_plain(tmp_path / "plain") as file:
        assert file.read() == b"x"
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("plain")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name in ("fifo", "link", "device", "folder", "socket"):
            with pytest.raises(NotPlain):
                open_plain(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        open_plain(tmp_path / "nothing")


def test_a_written_file_is_private_and_whole(tmp_path: Path) -> None:
    file = tmp_path / "token"
    write_private(file, b"one")
    write_private(file, b"two")
    assert (file.read_bytes(), mode(file)) == (b"two", 0o600)
    assert list(tmp_path.iterdir()) == [file]


def test_who_reads_meanwhile_sees_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """BUGS B107: a program that reads its settings again at every change takes half a file for a broken one."""
    file, texts = tmp_path / "settings.json", (b"a" * 5_000_000, b"b" * 5_000_000)
    write_private(file, texts[0])
    seen: list[bytes] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.append(file.read_bytes())
            if seen[-1] in texts:
                seen.pop()

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(20):
        write_private(file, texts[number % 2])
    done.set()
    watcher.join()
    assert [len(half) for half in seen] == []


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    write_private(file, b"old")

    def fail(handle: int) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        write_private(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_files_digest(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256_of(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
