"""Reading a chain: pages, single releases, differences, names; and that reading leaves nothing running."""

import os
from pathlib import Path

import pytest

from daemon.core.errors import NotFound, UsageError
from daemon.core.paths import Home
from daemon.core.releases import Release, ReleaseState
from daemon.store.releases import Releases
from tests.fakes.releases import ACCEPTED, candidate, released, write_weights


@pytest.fixture(scope="module")
def store(module_home: Home) -> Releases:
    """Seven releases, the last one a rollback, and two candidates."""
    releases = Releases.open(module_home)
    parent = "base"
    for number in range(1, 7):
        parent = released(releases, f"job_{number}", parent).id
    releases.rollback("default", "r2")
    releases.propose(candidate("job_8", parent), ACCEPTED)
    releases.propose(candidate("job_9", parent), ACCEPTED, ReleaseState.REJECTED)
    return releases


def numbers(rows: list[Release]) -> list[int]:
    return [row.number for row in rows]


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8])
def test_pages_cover_the_chain_once(store: Releases, limit: int) -> None:
    rows: list[Release] = []
    cursor: str | None = None
    while True:
        page, cursor = store.list("default", limit, cursor)
        rows += page
        assert len(page) <= limit
        if cursor is None:
            break
    assert numbers(rows) == [7, 6, 5, 4, 3, 2, 1]
    assert [row.head for row in rows] == [True, *[False] * 6]


def test_rows_are_what_get_gives(store: Releases) -> None:
    rows, _ = store.list("default", 50)
    assert rows == [store.get("default", row.id) for row in rows]


def test_states_choose(store: Releases) -> None:
    everything, _ = store.list("default", 50, states=frozenset(ReleaseState))
    assert [(row.number, row.state.value) for row in everything[:3]] == [
        (0, "rejected"), (0, "pending"), (7, "released")
    ]  # fmt: skip
    waits, _ = store.list("default", 50, states=frozenset({ReleaseState.PENDING}))
    assert [row.job for row in waits] == ["job_8"] == [row.job for row in store.waiting()]
    assert store.list("other") == ([], None)


def test_a_page_has_at_least_one_row(store: Releases) -> None:
    with pytest.raises(UsageError):
        store.list("default", 0)


def test_one_is_found_by_id_or_number(store: Releases) -> None:
    third = store.get("default", "r3")
    assert store.get("default", third.id) == third
    assert store.before(third) == store.get("default", "r2")
    assert store.before(store.get("default", "r1")) is None
    for wrong in ("r8", "r0", "r3-ffffffff", "r0-ffffffff", "base", "", "HEAD", "--all", "r3^", "r99999999999"):
        with pytest.raises(NotFound, match="has no release"):
            store.get("default", wrong)


def test_a_difference_is_to_what_it_was_made_from_unless_said(store: Releases) -> None:
    third = store.get("default", "r3")
    told = store.diff("default", third.id)
    assert told.endswith("@@ -1 +1 @@\n-- rule of job_2\n+- rule of job_3\n")
    assert store.diff("default", "r3", "base").endswith("@@ -0,0 +1 @@\n+- rule of job_3\n")
    assert store.diff("default", "r7", "r2") == ""
    waits = store.waiting()[0]
    assert "-- rule of job_6\n+- rule of job_8" in store.diff("default", waits.id)
    assert "release.json" not in told


def test_weights_differ_by_their_hashes(reef_home: Home, tmp_path: Path) -> None:
    store = Releases.open(reef_home)
    first = released(store, "job_1", weights=write_weights(tmp_path, 1))
    assert first.weights is not None
    assert f"+oid sha256:{first.weights.sha256}" in store.diff("default", first.id)


def test_names_that_git_could_not_take_are_scenarios_like_others(reef_home: Home) -> None:
    store = Releases.open(reef_home)
    names = ["a", "a/b", "a/b/c", "a.lock", "x.lock/y", "a/.b", "A", "0"]
    for number, name in enumerate(names):
        assert released(store, f"job_{number}", scenario=name).number == 1
    assert store.scenarios() == sorted(names)
    for name in names:
        assert [row.scenario for row in store.list(name)[0]] == [name]


def test_reading_leaves_no_process_and_no_open_file(store: Releases) -> None:
    def own() -> tuple[int, int]:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return len(children), len(list(Path("/proc/self/fd").iterdir()))

    store.list("default")
    before = own()
    for _ in range(5):
        store.list("default", 2)
        store.diff("default", "r3")
        store.files(store.get("default", "r2"))
    assert own() == before


def bytes_read() -> int:
    told = Path("/proc/self/io").read_text()
    return int(told.split("rchar: ")[1].split()[0])


def test_a_page_of_a_long_chain_costs_the_same_wherever_it_lies(memory_home: Home) -> None:
    """10,000 releases: the last page took 95 s when each page walked there from the head, 0.06 s since."""
    store = Releases.open(memory_home)
    parent = "base"
    for number in range(1, 41):
        parent = released(store, f"job_{number}", parent).id
    cursor = str(store.get("default", "r5").created_ns)

    def cost(before: str | None) -> int:
        start = bytes_read()
        assert len(store.list("default", 4, before)[0]) == 4
        return bytes_read() - start

    assert cost(cursor) < 3 * cost(None), "it may look for its start, in steps that halve the chain"
    start = bytes_read()
    assert numbers(store.since("default", 2, 4)[0]) == [3, 4, 5, 6]
    assert bytes_read() - start < 3 * cost(None)
