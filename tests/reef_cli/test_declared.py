"""What a run declares: as the daemon reads it."""

import json
import subprocess
from pathlib import Path
from typing import Any

from daemon.server import address
from daemon.server.identity import identify
from reef_cli import declared


def test_a_path_and_a_commit_arrive_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "a b $HOME ü"
    folder.mkdir()
    assert "x-reef-commit" not in declared.headers("run_1", "work", folder)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], cwd=folder, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True)
    said = declared.headers("run_1", "work", folder, adapter="aider", tag_release="base")
    told = identify(said)
    assert (told.scenario, told.agent, told.cwd, told.commit) == ("work", "aider", str(folder), head.stdout.strip())
    assert told.tags == {"run": "run_1", "release": "base"}
    path = declared.address("", "token", said) + "/v1/models"
    scope: dict[str, Any] = {"path": path, "raw_path": path.encode(), "headers": []}
    assert (address.take_token(scope), scope["path"]) == ("token", "/v1/models")
    assert json.loads(json.dumps({name.decode(): value.decode() for name, value in scope["headers"]})) == said
