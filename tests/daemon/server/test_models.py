"""Models over the control plane: adding, using, removing; who only watches sees them come."""

import asyncio
import json
from typing import Any

import pytest

from daemon.server.events import Changes
from daemon.server.fetching import Fetch, Fetching
from tests.daemon.server.test_feed import Following
from tests.fakes.daemon import RunningDaemon

CONFIG = "server: {port: 0}"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("~nobody-here/x", "there is no file ~nobody-here/x"),
        ("/" + "a" * 5000, "there is no file /aaa"),
        ("/\ud800", "there is no file"),
        ("https://[", "'https://[' is not a URL"),
        ("https://", "'https://' is not a URL"),
    ],
)
def test_a_source_that_is_none_is_named_in_the_last_line(daemon: RunningDaemon, source: str, says: str) -> None:
    _, raw = daemon.control("POST", "/reef/models", {"source": source})
    assert json.loads(raw.splitlines()[-1])["error"]["message"].startswith(says)


def test_models_are_added_used_and_removed_over_the_socket(daemon: RunningDaemon, model_path: Any) -> None:
    status, raw = daemon.control("POST", "/reef/models", {"source": str(model_path), "name": "small"})
    assert status == 200
    last = raw.splitlines()[-1] if isinstance(raw, bytes) else raw
    assert b'"model"' in last
    assert [item["name"] for item in daemon.get("/reef/models")["items"]] == ["small"]
    assert daemon.control("POST", "/reef/models/use", {"name": "small"})[1]["active"] is True
    assert daemon.control("POST", "/reef/models/use", {"name": "nobody"})[0] == 404
    assert daemon.control("DELETE", "/reef/models/small")[0] == 200


def test_a_model_that_is_not_there_says_so_in_the_last_line(daemon: RunningDaemon) -> None:
    _, raw = daemon.control("POST", "/reef/models", {"source": "/nowhere/model.gguf"})
    assert b'"error"' in raw.splitlines()[-1]
    assert b"/nowhere/model.gguf" in raw


def test_who_watches_is_told_of_each_change(daemon: RunningDaemon, model_path: Any) -> None:
    with Following(daemon) as stream:
        daemon.control("POST", "/reef/models", {"source": str(model_path), "name": "watched"})
        told = stream.until("model")[-1].data
        assert told["source"] == str(model_path)
        assert told["phase"]
        while "phase" in told:
            told = stream.until("model")[-1].data
        daemon.control("POST", "/reef/models/use", {"name": "watched"})
        assert stream.until("model")[-1].data == {"name": "watched"}
    assert daemon.get("/reef/models")["adding"] == []
    daemon.control("DELETE", "/reef/models/watched")


async def test_progress_is_told_by_whole_percents_without_passwords() -> None:
    changes = Changes(asyncio.get_running_loop())
    fetching = Fetching(changes)
    source = "https://me:secret@example.org/model.gguf?key=secret"
    for done in range(2001):
        fetching.at(source, "download", done, 2000)
    assert changes.told == 101
    assert fetching.all() == [Fetch("https://example.org/model.gguf", "download", 2000, 2000)]
    fetching.over(source)
    assert fetching.all() == []
    news, _ = changes.news(0)
    assert b"secret" not in b"".join(one.data for one in news)
