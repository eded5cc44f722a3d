"""A child of learning: heard line by line, logged within bounds, and gone with all it started."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from daemon.core.paths import Home
from daemon.learning.process import MARK, Child, Ended, environment, last_lines, module


class Heard:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def __call__(self, event: dict[str, Any]) -> None:
        event["event"]  # what is no event raises
        self.events.append(event)


async def ran(folder: Path, code: str, heard: Heard | None = None, seconds: float = 30.0) -> Ended:
    child = Child(folder / "log", heard or Heard())
    return await child.run(
        [sys.executable, "-c", code], dict(os.environ), folder, until=time.monotonic() + seconds
    )  # fmt: skip


async def test_events_are_heard_in_order(tmp_path: Path) -> None:
    heard = Heard()
    code = 'for n in range(1000): print(\'{"event": "say", "n": %d}\' % n)'
    assert await ran(tmp_path, code, heard) == Ended(0)
    assert [event["n"] for event in heard.events] == list(range(1000))


@pytest.mark.parametrize("line", ["[]", "{", "5", '{"no": "event"}', "\\xff", "null"])
async def test_what_is_no_event_ends_it(tmp_path: Path, line: str) -> None:
    ended = await ran(tmp_path, f"import time\nprint({line!r}, flush=True)\ntime.sleep(600)")
    assert ended.code == -9
    assert "what is no event" in str(ended.broken)


async def test_more_than_anyone_has_to_say_ends_it(tmp_path: Path) -> None:
    code = """
import json, sys
line = json.dumps({"event": "say", "text": "x" * 500_000}) + chr(10)
while True: sys.stdout.write(line)
"""
    ended = await ran(tmp_path, code)
    assert "more than 64 MiB" in str(ended.broken)


async def test_it_ends_when_its_time_is_up(tmp_path: Path) -> None:
    ended = await ran(tmp_path, "while True: pass", seconds=0.5)
    assert (ended.code, ended.late) == (-9, True)


async def test_a_grandchild_that_holds_the_pipes_does_not_hold_us(tmp_path: Path) -> None:
    """Not even one that has left its group and session; and it is found by its mark."""
    code = "import subprocess\nprint(subprocess.Popen(['sleep', '600'], start_new_session=True).pid, file=sys.stderr)"
    start, child = time.monotonic(), Child(tmp_path / "log", Heard())
    command = [sys.executable, "-c", f"import sys\n{code}"]
    ended = await child.run(command, {**os.environ, MARK: f"job_{start}"}, tmp_path, until=start + 30)
    assert ended.code == 0
    assert time.monotonic() - start < 20
    (pid,) = last_lines(tmp_path / "log", 1)
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() - start < 25
        await asyncio.sleep(0.05)


async def test_it_may_be_stopped_before_and_while_it_starts(tmp_path: Path) -> None:
    child = Child(tmp_path / "log", Heard())
    await child.stop()
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    assert (await child.run(command, dict(os.environ), tmp_path, until=time.monotonic() + 30)).code < 0
    again = Child(tmp_path / "log", Heard())
    running = asyncio.create_task(again.run(command, dict(os.environ), tmp_path, until=time.monotonic() + 30))
    await asyncio.sleep(0)
    await again.stop()
    assert (await running).code < 0


async def test_the_end_of_a_long_log_is_kept(tmp_path: Path) -> None:
    code = "import sys\nfor n in range(300_000): print('line', n, file=sys.stderr)"
    await ran(tmp_path, code)
    log = tmp_path / "log"
    assert log.stat().st_size <= 1 << 20
    assert last_lines(log, 2) == ["line 299998", "line 299999"]
    assert last_lines(tmp_path / "none", 5) == []


def test_only_named_variables_are_passed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "secret")
    for name in ("PIP_INDEX_URL", "https_proxy", "CUDA_VISIBLE_DEVICES", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "wanted")
    passed = environment(Home(tmp_path), tmp_path / "beside")
    assert "secret" not in passed.values()
    assert passed["REEF_HOME"] == str(tmp_path)
    assert {"PIP_INDEX_URL", "https_proxy", "CUDA_VISIBLE_DEVICES", "XDG_CACHE_HOME"} <= passed.keys()
    assert str(tmp_path / "beside") in passed["PYTHONPATH"].split(os.pathsep)


async def test_what_lies_in_the_working_directory_is_no_module(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('not the one')")
    child = Child(tmp_path / "log", Heard())
    command = module("recipes.registry")
    ended = asyncio.create_task(
        child.run(command, environment(Home(tmp_path), None), tmp_path, until=time.monotonic() + 2)
    )
    await ended
    assert "not the one" not in "".join(last_lines(tmp_path / "log", 50))
