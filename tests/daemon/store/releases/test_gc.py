"""Giving space back: what no release needs goes, what one needs stays, whoever publishes meanwhile."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from daemon.core.paths import Home
from daemon.core.releases import ReleaseState, Verdict
from daemon.store.releases import Releases
from daemon.store.releases.git import environment
from daemon.store.releases.lfs import Pointer
from tests.daemon.store.releases.conftest import Git
from tests.daemon.store.releases.test_processes import check, publish
from tests.fakes.releases import ACCEPTED, candidate, judged, released, write_weights

DAYS = 86_400


def aged(releases: Releases, days: float) -> None:
    """As if everything in the store had been written so many days ago."""
    then = time.time() - days * DAYS
    for path in releases.path.rglob("*"):
        if path.is_file() and path.name != "reef-publish.lock":
            os.utime(path, (then, then))


def oids(releases: Releases) -> set[str]:
    return {path.name for path in (releases.path / "lfs/objects").glob("??/??/*")}


def test_turned_down_long_ago_and_needed_by_nobody_goes(releases: Releases, tmp_path: Path, git: Git) -> None:
    first = released(releases, "job_1", weights=write_weights(tmp_path / "a", 1))
    kept = releases.propose(candidate("job_2", first.id, weights=write_weights(tmp_path / "b", 2)), ACCEPTED)
    refused = candidate("job_3", first.id, weights=write_weights(tmp_path / "c", 3))
    releases.propose(refused, judged(Verdict.REJECT), ReleaseState.REJECTED)
    manual = releases.propose(candidate("job_4", first.id), ACCEPTED, ReleaseState.KEPT)
    aged(releases, 2)
    assert len(oids(releases)) == 6
    assert releases.gc(30).candidates == 0, "turned down just now"
    assert releases.gc(0).candidates == 1
    aged(releases, 2)
    swept = releases.gc(0)
    assert (swept.candidates, swept.large_files, swept.bytes > 100_000) == (0, 2, True)
    assert len(oids(releases)) == 4
    rows, _ = releases.list("default", states=frozenset(ReleaseState))
    assert {row.id for row in rows} == {first.id, kept.id, manual.id}
    assert releases.lora(first) is not None
    assert releases.lora(kept) is not None
    assert releases.publish(kept, first.id).number == 2
    assert git("fsck", "--strict", "--no-dangling") == ""


def test_what_is_young_stays_though_nothing_names_it(releases: Releases, tmp_path: Path) -> None:
    """A candidate on its way: its objects are there before anything says so."""
    released(releases, "job_1")
    pointer = releases._lfs.put(write_weights(tmp_path) / "adapter.gguf")
    assert releases.gc(0).large_files == 0
    assert oids(releases) == {pointer.oid}
    aged(releases, 2)
    assert releases.gc(0).large_files == 1


def test_a_text_that_looks_like_a_pointer_sweeps_no_weights(releases: Releases, tmp_path: Path) -> None:
    """Git lists a blob under one path only: a recipe could write a harness file that is the same blob."""
    weights = write_weights(tmp_path)
    oid, size = releases._lfs.put(weights / "adapter.gguf")
    first = released(releases, "job_1", harness={"rules.md": Pointer(oid, size).dump().decode()})
    second = released(releases, "job_2", first.id, weights=weights, harness={"prompts/p.md": "x"})
    aged(releases, 2)
    releases.gc(0)
    assert releases.lora(second) is not None


def test_every_release_stays_whatever_names_it(releases: Releases, tmp_path: Path, git: Git) -> None:
    first = released(releases, "job_1", weights=write_weights(tmp_path / "a", 1))
    releases.pin(first)
    releases.rollback("default", "base")
    place = releases.archive("default")
    other = released(releases, "job_2", scenario="other", weights=write_weights(tmp_path / "b", 2))
    aged(releases, 2)
    assert releases.gc(0).large_files == 0
    assert releases.lora(other) is not None
    assert git("rev-list", "--count", f"{place}/head") == "2"


def test_a_start_sweeps_only_where_that_is_worth_it(releases: Releases) -> None:
    first = released(releases, "job_1")
    assert releases.tidy(30) is None
    releases.propose(candidate("job_2", first.id), judged(Verdict.REJECT), ReleaseState.REJECTED)
    assert releases.tidy(30) is None
    swept = releases.tidy(0)
    assert swept is not None
    assert swept.candidates == 1
    assert releases.tidy(0) is None
    assert releases.head("default") == first


def test_a_gc_that_was_killed_stops_nobody(releases: Releases, git: Git) -> None:
    """BUGS B207: a killed git leaves locks; the next one that holds the lock sweeps them."""
    first = released(releases, "job_1")
    with releases._repository.locked() as lock:
        running = subprocess.Popen(
            ["git", "gc", "--quiet"], cwd=releases.path, env=environment(releases.path), pass_fds=(lock,)
        )
        running.send_signal(signal.SIGKILL)
        running.wait()
    with releases._repository.locked():
        pass  # what it had started has ended, too
    for name in ("gc.pid", "gc.pid.lock", "packed-refs.lock", "packed-refs.new"):
        (releases.path / name).write_text("1 elsewhere")
    second = released(releases, "job_2", first.id)
    releases.gc(0)
    assert releases.head("default") == second
    assert git("fsck", "--strict", "--no-dangling") == ""


def test_sweeping_beside_publishers_loses_nothing(memory_home: Home) -> None:
    releases = Releases.open(memory_home)
    publishers = publish(memory_home, 3, 12, a_kill_each=8, beside=lambda: releases.gc(0))
    check(memory_home, publishers)


@pytest.mark.parametrize("left", ["lfs/tmp/abandoned", "objects/17/tmp_obj_abandoned"])
def test_what_killed_writers_left_goes(releases: Releases, left: str) -> None:
    released(releases, "job_1")
    path = releases.path / left
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")
    os.utime(path, (0, 0))
    releases.gc(0)
    assert not path.exists()
