"""Which release a job led to, whatever happened to the chain meanwhile."""

from daemon.core.paths import Home
from daemon.store.releases import Releases
from daemon.store.releases.index import Index, _Walked
from tests.daemon.store.releases.conftest import Git
from tests.fakes.releases import released


def test_a_job_is_found_in_a_chain_that_grows(releases: Releases) -> None:
    first = released(releases, "job_1")
    index = Index(releases._repository)
    assert first.commit is not None
    assert index.commit_of("default", first.commit, "job_1") == first.commit
    assert index.commit_of("default", first.commit, "job_2") is None
    second = released(releases, "job_2", first.id)
    third = released(releases, "job_3", second.id)
    assert third.commit is not None
    assert index.commit_of("default", third.commit, "job_2") == second.commit
    assert index.commit_of("default", third.commit, "job_1") == first.commit
    assert index.commit_of("default", second.commit or "", "job_3") is None, "a chain that got shorter is read anew"
    assert index.commit_of("other", first.commit, "job_3") is None


def test_a_candidates_mark_is_found_in_a_chain_that_grows(releases: Releases) -> None:
    first = released(releases, "job_1")
    index = Index(releases._repository)
    one, two = first.id.partition("-")[2], released(releases, "job_2", first.id)
    assert index.marked("default", first.commit or "", one) == first.commit
    assert index.marked("default", first.commit or "", two.id.partition("-")[2]) is None
    assert index.marked("default", two.commit or "", two.id.partition("-")[2]) == two.commit
    assert index.marked("default", two.commit or "", one) == first.commit


def test_a_job_of_another_chain_is_none_of_this_one(releases: Releases) -> None:
    first = released(releases, "job_1")
    assert releases._index.commit_of("default", first.commit or "", "job_1") == first.commit
    releases.archive("default")
    again = released(releases, "job_2")
    assert releases._index.commit_of("default", again.commit or "", "job_1") is None


def test_a_commit_that_is_gone_is_no_hindrance(releases: Releases) -> None:
    first = released(releases, "job_1")
    index = Index(releases._repository)
    index._known["default"] = _Walked(["0" * 39 + "1"], {"job_9": "x"}, {})
    assert index.commit_of("default", first.commit or "", "job_1") == first.commit
    assert index.commit_of("default", first.commit or "", "job_9") is None


def test_another_process_released_it(reef_home: Home, releases: Releases, git: Git) -> None:
    first = released(releases, "job_1")
    mine = releases._index.commit_of("default", first.commit or "", "job_2")
    theirs = released(Releases.open(reef_home), "job_2", first.id)
    assert (mine, released(releases, "job_2", first.id)) == (None, theirs)
