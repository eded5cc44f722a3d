"""The daemon's process: what it says when it cannot start, or starts without what it had."""

import os
import subprocess
import sys

from daemon.core.paths import Home, write_private
from daemon.store.db import Store
from tests.fakes.daemon import REPOSITORY, running_daemon
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


def test_an_answer_that_was_seen_to_its_end_is_on_disk_though_the_daemon_ends_right_after(reef_home: Home) -> None:
    with running_provider((Turn("kept"),)) as provider:
        config = f'server: {{port: 0}}\nengine: p\nengines: {{p: {{base_url: "{provider.url}/v1"}}}}\n'
        with running_daemon(reef_home, config) as daemon:
            body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "q"}]}
            status, headers, _ = daemon.post("/v1/chat/completions", body)
            daemon.process.terminate()
            daemon.process.wait(60)
    assert status == 200
    store = Store.open(reef_home.database)
    assert store.record(headers["x-reef-agent-record-id"]).preview == "kept"
    store.close()
