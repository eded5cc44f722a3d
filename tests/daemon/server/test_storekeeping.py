"""``POST /reef/releases/gc`` and ``/push``: done, told, and in the audit log before the answer."""

import subprocess
from pathlib import Path

import pytest

from daemon.core.paths import Home
from daemon.core.releases import ReleaseState, Verdict
from daemon.store.releases import Releases
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.provider import Provider
from tests.fakes.releases import candidate, judged, released


def turned_down(store: Releases, job: str) -> None:
    store.propose(candidate(job, store.standing("default").id), judged(Verdict.REJECT), ReleaseState.REJECTED)


def last(daemon: RunningDaemon) -> tuple[str, dict[str, object]]:
    entry = daemon.get("/reef/audit?limit=1")["items"][0]
    return entry["event"], entry["facts"]


def test_gc_gives_up_what_was_turned_down(daemon: RunningDaemon, store: Releases) -> None:
    released(store, "job_1", store.standing("default").id)
    turned_down(store, "job_2")
    status, told = daemon.control("POST", "/reef/releases/gc", {})
    assert (status, told["candidates"]) == (200, 0), "thirty days are not over"
    status, told = daemon.control("POST", "/reef/releases/gc", {"days": 0})
    assert (status, told["candidates"], last(daemon)) == (200, 1, ("release_gc", told | {"by": "person"}))
    assert daemon.get("/reef/releases?state=rejected")["items"] == []


def test_push_takes_every_scenario(daemon: RunningDaemon, store: Releases, tmp_path: Path) -> None:
    released(store, "job_3", scenario="other")
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    status, told = daemon.control("POST", "/reef/releases/push", {"remote": str(remote)})
    assert (status, told["large_files"], "other" in told["scenarios"]) == (200, 0, True)
    assert last(daemon) == (
        "release_push", {"scenarios": len(told["scenarios"]), "large_files": 0, "by": "person"},
    )  # fmt: skip


def test_a_start_gives_up_what_is_old_and_logs_it(reef_home: Home, provider: Provider, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    store = Releases.open(reef_home)
    released(store, "job_1")
    turned_down(store, "job_2")
    config = f"releases: {{rejected_days: 0, remote: {remote}}}\n{provider.config()}"
    with running_daemon(reef_home, config) as daemon:
        until(lambda: last(daemon)[0] == "release_gc", "the start's sweep")
        assert last(daemon)[1]["by"] == "daemon"
        status, told = daemon.control("POST", "/reef/releases/push", {})
        assert (status, told["remote"]) == (200, str(remote))


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("gc", {"days": -1}, 400),
        ("gc", {"days": True}, 400),
        ("gc", {"days": "1"}, 400),
        ("push", {}, 400),
        ("push", {"remote": 1}, 400),
        ("push", {"remote": "-x"}, 400),
    ],
)
def test_what_cannot_be_done_is_said(daemon: RunningDaemon, path: str, body: object, status: int) -> None:
    found, told = daemon.control("POST", f"/reef/releases/{path}", body)
    assert (found, set(told["error"])) == (status, {"kind", "message", "hint"})


def test_a_secret_in_an_address_is_neither_said_nor_logged(daemon: RunningDaemon, store: Releases) -> None:
    for remote in ("https://ghp_SECRET@x.example/x.git", "https://me:ghp_SECRET@x.example/x.git"):
        status, told = daemon.control("POST", "/reef/releases/push", {"remote": remote})
        assert (status, "ghp_SECRET" in str(told)) == (400, False)
    assert "ghp_SECRET" not in daemon.log()


def test_an_agents_token_keeps_no_store(daemon: RunningDaemon) -> None:
    for verb in ("gc", "push"):
        response = daemon.open(f"/reef/releases/{verb}", {})
        response.read()
        assert response.status == 401
