"""The engine inside, watched while it writes; and what its answers are said to cost."""

import json
from threading import Thread
from typing import Any

import pytest

from daemon.core.client import Client
from tests.fakes.daemon import RunningDaemon
from tests.fakes.provider import until

pytestmark = pytest.mark.engine


def test_an_answer_is_read_word_by_word_and_costs_nothing(embedded: RunningDaemon) -> None:
    said = [{"role": "user", "content": "Tell me a long story of a reef and its fish."}]
    body = {"model": "default", "messages": said, "stream": True, "max_tokens": 120, "temperature": 0}
    told: list[bytes] = []
    asking = Thread(target=lambda: told.append(embedded.post("/v1/chat/completions", body)[2]))
    asking.start()
    until(lambda: bool(embedded.get("/reef/live")["items"]), "it is being answered")
    (call,) = embedded.get("/reef/live")["items"]
    events = list(Client(embedded.home.socket).events(f"/reef/live/{call['receipt']}"))
    asking.join(60)
    texts = [data["text"] for name, data in events if name == "text"]
    assert "".join(texts) == answered(told[0])
    assert len(texts) > 3, "while it is written, not at its end"
    assert events[-1] == ("end", {"end": "ok"})

    record = embedded.get(f"/reef/records/{call['receipt']}")
    assert (record["cost_usd"], record["completion_tokens"]) == (0.0, 120)
    engine = embedded.get("/reef/status")["engines"][0]
    assert engine["tokens_per_second"] > 0
    assert 0 <= engine["cache_hit"] <= 1
    assert engine["memory_mb"] > 100
    assert engine["weights"] == record["weights"]


def answered(stream: bytes) -> str:
    chunks: list[dict[str, Any]] = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
