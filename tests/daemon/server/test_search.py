"""Finding and summing up over HTTP: what pages look like, and what is refused."""

from urllib.parse import quote

import pytest

from tests.daemon.server.test_control import say
from tests.fakes.daemon import RunningDaemon, until
from tests.fakes.provider import Turn

TURNS = (Turn("by the moon"),)


def test_records_are_found_by_what_they_added(daemon: RunningDaemon) -> None:
    receipt = say(daemon, "how do tides work")
    until(lambda: bool(daemon.get("/reef/search?q=tides")["items"]), "the index")
    page = daemon.get("/reef/search?q=tides%20moon")
    assert [hit["record"]["receipt"] for hit in page["items"]] == [receipt]
    assert page["items"][0]["snippet"] == "how do tides work"
    assert (page["next"], page["unindexed"]) == (None, 0)


def test_sessions_are_found_by_their_records(daemon: RunningDaemon) -> None:
    receipt = say(daemon, "in a scenario of its own", **{"x-reef-scenario": "found"})
    (row,) = daemon.get("/reef/sessions?q=status:ok&scenario=found")["items"]
    assert row["id"] == daemon.get(f"/reef/records/{receipt}")["session"]
    assert daemon.get("/reef/sessions?q=status:failed&scenario=found")["items"] == []


def test_a_filtered_list_is_read_from_both_ends(daemon: RunningDaemon) -> None:
    for name in ("one", "two", "three"):
        say(daemon, f"{name} of the ends", **{"x-reef-scenario": "ends"})
    page = daemon.get("/reef/sessions?q=scenario:ends")
    whole = page["items"]
    assert (len(whole), page["total"], page["next"]) == (3, 3, None)
    assert daemon.get(f"/reef/sessions?q=scenario:ends&after={whole[2]['seq']}&limit=1")["items"] == [whole[1]]
    older = daemon.get(f"/reef/sessions?q=scenario:ends&before={whole[0]['seq']}")
    assert (older["items"], older["total"]) == (whole[1:], None)


def test_a_trace_tells_what_happened_after_each_answer(daemon: RunningDaemon) -> None:
    first = say(daemon, "signals begin")
    say(daemon, "signals begin", "by the moon", "no, not so")
    until(lambda: bool(daemon.get(f"/reef/records/{first}")["signals"]), "the signals")
    trace = daemon.get(f"/reef/traces/{first}")
    assert [(one["name"], one["text"]) for one in trace["records"][0]["signals"]] == [("turn", "no, not so")]
    assert [entry["record"]["edge"] for entry in trace["records"]] == ["start", "next"]


def test_sums_are_split_as_asked(daemon: RunningDaemon) -> None:
    say(daemon, "count", **{"x-reef-scenario": "sums", "user-agent": "pi/1.6.0"})
    (row,) = daemon.get("/reef/rollups?unit=hour&scenario=sums&by=agent,model")["items"]
    assert (row["agent"], row["model"], row["scenario"], row["turns"]) == ("pi", "m", None, 1)


def test_sessions_are_told_as_they_are_now(daemon: RunningDaemon) -> None:
    say(daemon, "by its id", **{"x-reef-scenario": "named"})
    say(daemon, "another", **{"x-reef-scenario": "named"})
    rows = daemon.get("/reef/sessions?scenario=named")["items"]
    ids = ",".join(["ses_none", *(row["id"] for row in reversed(rows))])
    assert daemon.get(f"/reef/sessions?ids={ids}") == {"items": rows, "next": None, "total": None}


def test_a_list_may_be_sorted_by_what_was_taken(daemon: RunningDaemon) -> None:
    say(daemon, "a session", "by the moon", "of two turns")
    first, *_ = daemon.get("/reef/sessions?sort=tokens&limit=2")["items"]
    (second,) = daemon.get(f"/reef/sessions?sort=tokens&limit=1&before={first['seq']}")["items"]
    taken = [row["prompt_tokens"] + row["completion_tokens"] for row in (first, second)]
    assert taken == sorted(taken, reverse=True)
    assert daemon.get("/reef/sessions?sort=activity&limit=1") == daemon.get("/reef/sessions?limit=1")


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/reef/search?q=kind:mian", "kind:mian"),
        ("/reef/sessions?q=score:fair", "score:fair"),
        ("/reef/sessions?q=x&before=1&after=1", "exclude each other"),
        ("/reef/sessions?sort=size", "size"),
        ("/reef/sessions?ids=" + ",".join(["ses_1"] * 501), "501 ids"),
        ("/reef/sessions?sort=tokens&q=x", "sort=tokens goes over all sessions"),
        ("/reef/sessions?sort=tokens&scenario=x", "sort=tokens goes over all sessions"),
        ("/reef/search?q=" + quote("since:never"), "since:never"),
        ("/reef/search?q=x&before=1e3", "1e3"),
        ("/reef/rollups?unit=minute", "minute"),
        ("/reef/rollups?by=person", "person"),
        ("/reef/rollups?unit=hour&since=2001-01-01", "2001-01-01"),
    ],
)
def test_what_is_refused_is_named(daemon: RunningDaemon, path: str, named: str) -> None:
    status, error = daemon.control("GET", path)
    assert status == 400
    assert error["error"]["kind"] == "usage"
    assert named in error["error"]["message"]


def test_a_record_tells_where_it_came_from(daemon: RunningDaemon) -> None:
    told = {"x-reef-cwd": "/home/dev/app", "x-reef-commit": "abc", "x-reef-tag-run": "7"}
    row = daemon.get(f"/reef/records/{say(daemon, 'placed', **told)}")
    assert (row["cwd"], row["commit"], row["tags"]) == ("/home/dev/app", "abc", {"run": "7"})
    assert (row["path"], row["subagent"], row["note"]) == ("/v1/chat/completions", None, None)
