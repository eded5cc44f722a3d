"""The daemon's process: what it says when it cannot start, or starts without what it had."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from daemon.core.paths import Home, write_private
from daemon.store.db import Store
from tests.fakes.daemon import REPOSITORY, running_daemon, until
from tests.fakes.disks import small_disk
from tests.fakes.provider import Turn, running_provider


def test_a_folder_in_place_of_a_file_is_named_without_a_traceback(reef_home: Home) -> None:
    reef_home.config.write_text("server: {port: 0}\n")
    reef_home.log.mkdir()
    command = [sys.executable, "-m", "daemon.server"]
    environment = {**os.environ, "REEF_HOME": str(reef_home.root)}
    ended = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    said = ended.stderr.decode()
    assert (ended.returncode, str(reef_home.log) in said, "Traceback" in said) == (1, True, False)


def test_a_damaged_database_is_kept_aside_and_told_in_log_and_status(reef_home: Home) -> None:
    reef_home.prepare()
    write_private(reef_home.database, b"not a database at all" * 500)
    with running_daemon(reef_home) as daemon:
        (note,) = [one for one in daemon.get("/reef/status")["notes"] if "damaged" in one]
        (aside,) = reef_home.database.parent.glob("*.damaged-*")
        assert str(aside) in note
        assert aside.read_bytes() == b"not a database at all" * 500
        assert f"it is kept as {aside.name}" in daemon.log()
        assert daemon.get("/reef/status")["recording"]["state"] == "on"


def test_a_second_daemon_on_a_home_never_opens_its_database(reef_home: Home) -> None:
    with running_daemon(reef_home) as first:
        second = subprocess.run(
            [sys.executable, "-m", "daemon.server"],
            env={**os.environ, "REEF_HOME": str(reef_home.root)}, cwd=REPOSITORY, capture_output=True, text=True,
        )  # fmt: skip
        assert second.returncode != 0
        assert "another daemon" in second.stderr
        assert first.get("/reef/status")["recording"]["state"] == "on"


@pytest.mark.parametrize(
    ("path", "stream"), [("chat/completions", True), ("messages", True), ("responses", True), ("messages", False)]
)
def test_an_answer_that_was_seen_to_its_end_is_on_disk_though_the_daemon_ends_right_after(
    reef_home: Home, path: str, stream: bool
) -> None:
    """B154, langfuse#2214: what waited to be flushed was lost."""
    with running_provider((Turn("kept"),)) as provider:
        speaks = "dialects: [chat, messages, responses]"
        config = f'server: {{port: 0}}\nengine: p\nengines: {{p: {{base_url: "{provider.url}/v1", {speaks}}}}}\n'
        with running_daemon(reef_home, config) as daemon:
            said = [{"role": "user", "content": "q"}]
            body = {"model": "m", "stream": stream, "max_tokens": 9, "messages": said, "input": said}
            status, headers, _ = daemon.post(f"/v1/{path}", body)
            daemon.process.terminate()
            daemon.process.wait(60)
    assert status == 200
    store = Store.open(reef_home.database)
    row = store.record(headers["x-reef-agent-record-id"])
    assert (row.preview, row.end) == ("kept", "ok")
    store.close()


@pytest.fixture
def small_home(tmp_path: Path) -> Iterator[Home]:
    with small_disk(tmp_path / "disk", "12m") as place:
        yield Home(place / "home")


def test_on_a_full_disk_agents_are_answered_and_status_says_what_is_missing(small_home: Home) -> None:
    """A proxy whose log disk is full must go on (sysown/proxysql#1297)."""
    with running_provider((Turn("answered"),)) as provider, running_daemon(small_home, provider.config()) as daemon:
        filler = small_home.root / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(b"x" * 65536):
                pass

        def ask(text: str) -> int:
            body = {"model": "m", "messages": [{"role": "user", "content": text}]}
            status, _, raw = daemon.post("/v1/chat/completions", body)
            assert b"answered" in raw
            return status

        def full() -> bool:
            assert ask(os.urandom(100_000).hex()) == 200
            return bool(daemon.get("/reef/status")["recording"]["state"] == "degraded")

        until(full, "the end of the disk")
        assert "is full" in daemon.get("/reef/status")["recording"]["detail"]
        filler.unlink()
        assert ask("and again") == 200
        until(lambda: daemon.get("/reef/status")["recording"]["state"] == "on", "space")
    store = Store.open(small_home.database)
    assert store.verify() == []
    store.close()
