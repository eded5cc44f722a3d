"""A chain that is put aside: nothing serves it any more, and all of it can still be read."""

from daemon.core.paths import Home
from daemon.store.releases import Releases
from tests.daemon.store.releases.conftest import Git
from tests.fakes.releases import ACCEPTED, candidate, released


def test_every_commit_stays_under_another_name(releases: Releases, git: Git) -> None:
    first = released(releases, "job_1", scenario="work/api")
    second = released(releases, "job_2", first.id, scenario="work/api")
    waits = releases.propose(candidate("job_3", second.id, scenario="work/api"), ACCEPTED)
    other = released(releases, "job_4", scenario="work")
    place = releases.archive("work/api")
    assert place == f"refs/reef-archive/work%2Fapi/{str(second.commit)[:12]}"
    assert releases.head("work/api") is None
    assert releases.scenarios() == ["work"]
    assert releases.waiting() == []
    assert releases.standing("work/api").trouble is None
    assert git("log", "--format=%H", f"{place}/head").split() == [second.commit, first.commit]
    assert git("rev-parse", f"{place}/candidates/job_3") == waits.commit
    assert git("branch", "--format=%(refname:short)") == "work"
    assert releases.head("work") == releases.get("work", other.id)
    assert "fatal" not in git("fsck")


def test_a_new_chain_of_the_same_name_starts_from_the_base(reef_home: Home, releases: Releases, git: Git) -> None:
    released(releases, "job_1")
    releases.pin(released(releases, "job_0", releases.standing("default").id))
    places = [releases.archive("default")]
    assert releases.serving("default") is None
    again = released(releases, "job_2")
    assert (again.number, again.parent) == (1, "base")
    assert Releases.open(reef_home).standing("default").release == releases.get("default", again.id)
    assert git("branch", "--format=%(refname:short)") == "default"
    places.append(releases.archive("default"))
    assert len(set(places)) == 2
    assert releases.archive("default") is None


def test_candidates_alone_are_put_aside_too(releases: Releases) -> None:
    releases.propose(candidate("job_1"), ACCEPTED)
    assert releases.archive("default") is not None
    assert releases.waiting() == []
