"""The public client, as its authors publish it, against this daemon: ask with a record, report, import, pull."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.paths import Home
from daemon.store.db import Store
from tests.fakes import chain
from tests.fakes.daemon import RunningDaemon, start, until
from tests.fakes.provider import Turn, running_provider

pytestmark = pytest.mark.slow

PACKAGE = "reef-client==0.3.1"
LINES = 10_000
ASK = """
import json, os, sys
from reef_client import ReefClient
client = ReefClient(sys.argv[1], token=os.environ["REEF_TOKEN"])
body, receipt = client.inference_with_record(
    "theirs", "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "how do tides work"}]}
)
told = client.report("theirs", {"score": 1.0, "feedback": "right"}, references=[receipt])
print(json.dumps([body["choices"][0]["message"]["content"], receipt, told]))
"""
PULL = """
import json, os, pathlib, sys
from reef_client import ReefClient
client = ReefClient(sys.argv[1], token=os.environ["REEF_TOKEN"])
versions = client.harness_versions("theirs")
pulled = [client.harness_pull("theirs", sys.argv[2])]
root = pathlib.Path(sys.argv[2])
tree = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.md")}
pulled.append(client.harness_pull("theirs", sys.argv[2], version=versions[0]["artifact_version"]))
print(json.dumps([versions, pulled, tree]))
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the client and nothing else."""
    root = tmp_path_factory.mktemp("client")
    python = root / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(root)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", PACKAGE], check=True)
    return python


@pytest.fixture
def daemon(reef_home: Home) -> Iterator[RunningDaemon]:
    with running_provider((Turn("by the moon"),)) as provider:
        running = start(reef_home, provider.config())
        try:
            yield running
        finally:
            running.stop()


def environment(token: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "REEF_TOKEN": token}


def test_it_asks_gets_a_receipt_and_reports_on_it(client: Path, daemon: RunningDaemon) -> None:
    done = subprocess.run(
        [str(client), "-c", ASK, daemon.url], env=environment(daemon.agent_token), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    text, receipt, told = json.loads(done.stdout)
    assert text == "by the moon"
    row = daemon.get(f"/reef/records/{receipt}")
    assert (row["scenario"], [one["id"] for one in row["reports"]]) == ("theirs", [told["agent_record_id"]])


def test_it_lists_a_harness_and_pulls_any_of_its_releases(client: Path, daemon: RunningDaemon, tmp_path: Path) -> None:
    first = chain.publish(daemon.home, "job_1", {"rules.md": "Old.\n"}, scenario="theirs")
    harness = {**chain.HARNESS, "memory/team.md": "We use uv.\n"}
    second = chain.publish(daemon.home, "job_2", harness, scenario="theirs")
    folder = tmp_path / "tree"

    done = subprocess.run(
        [str(client), "-c", PULL, daemon.url, str(folder)],
        env=environment(daemon.agent_token), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    versions, pulled, tree = json.loads(done.stdout)
    assert [row["artifact_version"] for row in versions] == [first.id, second.id]
    assert [row["parent"] for row in versions] == ["base", first.id]
    assert (pulled, tree) == ([second.id, first.id], harness)
    left = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    note = json.loads(left.pop(".reef-harness-version"))
    assert (note["artifact_version"], left) == (first.id, {"rules.md": "Old.\n"}), "what the newer one had is gone"


def lines(path: Path) -> None:
    with path.open("w") as file:
        for number in range(LINES // 2):
            message = {"role": "assistant", "content": f"answer {number}"}
            payload = {
                "model": "m",
                "messages": [{"role": "user", "content": f"question {number}"}],
                "response": {"choices": [{"message": message}]},
            }
            file.write(json.dumps({"agent_record_id": f"q-{number}", "request_type": "inference", "payload": payload}))
            file.write("\n")
            said = {"references": [f"q-{number}"], "score": number % 2}
            file.write(json.dumps({"agent_record_id": f"r-{number}", "request_type": "report", "payload": said}) + "\n")


def test_an_import_that_is_killed_with_the_daemon_is_resumed_and_keeps_every_line_once(
    client: Path, daemon: RunningDaemon, tmp_path: Path
) -> None:
    source = tmp_path / "records.jsonl"
    lines(source)
    progress = source.with_name(source.name + ".reef-import.json")
    command = [str(client), "-m", "reef_client", "import", str(source), "--url", daemon.url, "--scenario", "theirs"]

    def importing() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(command, env=environment(daemon.control_token), stderr=subprocess.DEVNULL)

    def acknowledged() -> int:
        return int(json.loads(progress.read_text())["count"]) if progress.exists() else 0

    port, reached = daemon.port, 0
    for kill_daemon in (False, True, False):
        process = importing()
        until(lambda: acknowledged() > reached + 500, "more of the import")  # noqa: B023
        process.send_signal(signal.SIGKILL)
        process.wait()
        reached = acknowledged()
        assert reached < LINES, "it was too fast to be killed"
        if kill_daemon:
            daemon.kill()
            daemon = start(daemon.home, f"server: {{port: {port}}}\n")
    try:
        assert importing().wait() == 0
        assert acknowledged() == LINES
        counts = daemon.get("/reef/status")["counts"]
        assert (counts["records"], counts["reports"]) == (LINES // 2, LINES // 2)
        assert daemon.get("/reef/records/q-4999")["reports"][0]["score"] == 1.0
    finally:
        daemon.stop()
    store = Store.open(daemon.home.database)
    try:
        assert store.verify() == []
    finally:
        store.close()
