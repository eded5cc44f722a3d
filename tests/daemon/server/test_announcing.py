"""What became of a release: in the audit log first, then told; what a killed daemon did not log is logged later."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import StoreError
from daemon.core.paths import Home
from daemon.server.announcing import Announcer
from daemon.server.events import Changes
from daemon.server.heads import Heads, row
from daemon.store.db import Store
from daemon.store.releases import Releases
from tests.fakes.releases import released


@pytest.fixture
async def announcer(tmp_path: Path) -> Any:
    store = Store.open(tmp_path / "reef.db", durability="normal")
    yield Announcer(store, Changes(asyncio.get_running_loop()))
    store.close()


async def test_the_log_has_it_before_anyone_is_told(announcer: Announcer, reef_home: Home) -> None:
    release = released(Releases.open(reef_home), "job_1")
    await announcer.tell("release", row(release), "gate")
    ((entry,), _) = announcer.store.audit.page()
    assert (entry.event, entry.facts["id"], entry.facts["by"]) == ("release", release.id, "gate")
    assert set(entry.facts) == {"id", "scenario", "number", "kind", "state", "job", "commit", "by"}
    ((news,), _) = announcer.changes.news(0)
    assert news.event == "release"


async def test_a_log_that_cannot_be_written_is_an_error_and_watchers_still_know(announcer: Announcer) -> None:
    announcer.store.close()
    with pytest.raises(StoreError):
        await announcer.tell("release", {"id": "r1-00000000", "scenario": "default"}, "person")
    assert len(announcer.changes.news(0)[0]) == 1


async def test_catching_up_logs_each_release_once(announcer: Announcer, reef_home: Home) -> None:
    releases = Releases.open(reef_home)
    first = released(releases, "job_1")
    await announcer.tell("release", row(first), "gate")
    second = released(releases, "job_2", first.id)
    third = released(releases, "job_3", second.id)
    other = released(releases, "job_4", scenario="other")
    heads = Heads(releases, lambda: None, announcer.tell)
    heads.load()
    for _ in range(2):
        await announcer.catch_up(heads)
        rows, _ = announcer.store.audit.page()
        assert [entry.facts["id"] for entry in rows] == [other.id, third.id, second.id, first.id]
    assert announcer.store.audit.released() == {"default": 3, "other": 1}
    announcer.store.audit.note("scenario_removed", {"scenario": "default"}).result(20)
    assert announcer.store.audit.released() == {"default": 0, "other": 1}
