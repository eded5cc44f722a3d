"""One process has a lock at a time, whoever else waits, and it is free when that process is gone."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from daemon.core.locks import is_locked, locked, open_lock, try_lock

HOLD = """
import sys
from pathlib import Path
from daemon.core.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert is_locked(path)
        other.kill()
    assert not is_locked(path)


def test_who_comes_second_is_told_and_waits(tmp_path: Path) -> None:
    path, told = tmp_path / "lock", threading.Event()
    order: list[str] = []

    def second() -> None:
        with locked(path, told.set):
            order.append("second")

    thread = threading.Thread(target=second)
    with locked(path):
        thread.start()
        assert told.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_a_lock_is_taken_once_and_free_when_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    one, other = open_lock(path), open_lock(path)
    assert try_lock(one)
    assert not try_lock(other)
    os.close(one)
    assert try_lock(other)
    os.close(other)
    assert path.stat().st_mode & 0o777 == 0o600


def test_no_file_is_no_lock(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "nothing")
