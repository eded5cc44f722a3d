"""`reef releases gc` and `push`."""

import subprocess
from pathlib import Path

import pytest

from daemon.core.errors import ExitCode
from daemon.core.releases import ReleaseState, Verdict
from daemon.store.releases import Releases
from tests.fakes.releases import candidate, judged, released, write_weights
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


@pytest.fixture(scope="module")
def store(served: Served) -> Releases:
    return Releases.open(served.home)


def test_push_says_what_went_where(cli: Reef, store: Releases, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    nothing = cli("releases", "push", str(remote))
    assert (nothing.code, nothing.out) == (0, "")
    assert "nothing is released yet" in nothing.err
    released(store, "job_1", weights=write_weights(tmp_path))
    assert cli("releases", "push", str(remote)).out == f"pushed  default  {remote}\n        with 2 large files\n"
    again = cli("releases", "push", str(remote), "--json").json()
    assert (again["scenarios"], again["large_files"]) == (["default"], 0)
    missing = cli("releases", "push", "--json")
    assert (missing.code, missing.error()["kind"]) == (ExitCode.USAGE, "usage")


def test_gc_says_what_it_gave_back(cli: Reef, store: Releases) -> None:
    refused = candidate("job_2", store.standing("gc").id, scenario="gc")
    store.propose(refused, judged(Verdict.REJECT), ReleaseState.REJECTED)
    assert cli("releases", "gc", "--json").json()["candidates"] == 0
    told = cli("releases", "gc", "--days", "0").out
    assert "MB given back: 1 candidate, 0 large files" in told
