"""Secrets planted in everything that comes in are in nothing that Reef keeps or tells; providers get them unchanged.

Each canary is a key of its own, so that one that gets through names its way in.
"""

import base64
import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import zstandard

from daemon.core.paths import Home
from daemon.store.db import Store
from tests.fakes.collector import Collector, running_collector
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.scripted import SSE, Bytes, Scripted, running_scripted

CHAT = "/v1/chat/completions"
NOISE = random.Random(20)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: What each way in was sent, by its name.
CANARIES: dict[str, str] = {}


def plant(way: str, shape: str = "sk-ant-api03-{}") -> str:
    """A new key that comes in that way."""
    body = "".join(NOISE.choice(LETTERS) + str(NOISE.randrange(10)) for _ in range(18))
    assert way not in CANARIES
    CANARIES[way] = body
    return shape.format(body)


def say(daemon: RunningDaemon, body: object, path: str = CHAT, **headers: str) -> tuple[int, str, bytes]:
    status, told, raw = daemon.post(path, body, **headers)
    return status, told.get("x-reef-agent-record-id", ""), raw


def whole(text: str, **message: object) -> Bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
    return Bytes((json.dumps({"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice]}).encode(),))


def streamed(*deltas: dict[str, object]) -> Bytes:
    events = [{"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events.append({"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    return Bytes(tuple(raw.encode()[at : at + 7] for at in range(0, len(raw), 7)), SSE)


def asked(text: str = "hello", **more: object) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


@pytest.fixture(scope="module")
def provider() -> Iterator[Scripted]:
    with running_scripted() as running:
        yield running


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with running_collector() as running:
        yield running


@pytest.fixture(scope="module")
def daemon(module_home: Home, provider: Scripted, collector: Collector) -> Iterator[RunningDaemon]:
    config = f"""
server: {{port: 0}}
engine: p
engines: {{p: {{base_url: "{provider.url}/v1"}}, nobody: {{base_url: "http://127.0.0.1:1/v1"}}}}
models: {{lost: nobody}}
telemetry: {{endpoint: "{collector.url}", content: true}}
"""
    with running_daemon(module_home, config) as running:
        yield running


def test_credentials_go_to_the_provider_and_nowhere_else(daemon: RunningDaemon, provider: Scripted) -> None:
    provider.answers.append(whole("ok"))
    headers = {
        "x_reef_token": daemon.agent_token,
        "authorization": "Bearer " + plant("authorization"),
        "x_api_key": plant("x-api-key"),
        "api_key": plant("api-key", "{}"),
        "x_goog_api_key": plant("x-goog-api-key", "AIza{}"),
        "cookie": "session=" + plant("cookie", "{}"),
        "proxy_authorization": "Basic " + plant("proxy-authorization", "{}"),
        "x_custom_secret": plant("unknown header", "{}"),
    }
    google = plant("query", "AIza{}")
    assert say(daemon, asked(), f"{CHAT}?key={google}", **headers)[0] == 200
    path, got, _ = provider.seen[-1]
    assert google in path
    for way in ("authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"):
        assert CANARIES[way] in got[way]


def test_what_an_agent_sends(daemon: RunningDaemon, provider: Scripted) -> None:
    pem = base64.b64encode(NOISE.randbytes(600)).decode()
    CANARIES["private key"] = pem[100:140]
    env = f"DB=postgres://me:{plant('url password', 'pw{}')}@db/x\nTOKEN={plant('env token', '{}')}\nHOME=/home/me\n"
    key = f"-----BEGIN PRIVATE KEY-----\n{pem}\n-----END PRIVATE KEY-----\n"
    arguments = json.dumps({"headers": {"Authorization": f"Bearer {plant('tool call, escaped', '{}')}"}})
    cookies = f"> Cookie: theme=dark; sid={plant('cookie in a log', '{}')}\n"
    CANARIES["encoded file"] = base64.b64encode(f"# .env\nK={plant('key in it')}\n".encode()).decode()[12:]
    body = {
        "model": plant("model name"),
        "user": plant("user field"),
        "metadata": {"note": plant("metadata")},
        "tools": [{"type": "function", "function": {"name": "sh", "description": plant("tool description")}}],
        "messages": [
            {"role": "system", "content": f"The key is {plant('system prompt')}."},
            {"role": "user", "content": f"ünï {plant('user text')}\n{key}"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "sh", "arguments": arguments}}]},
            {"role": "tool", "tool_call_id": "t1", "content": f"{env}{cookies}IyAuZW52Cks9{CANARIES['encoded file']}"},
            {"role": "user", "content": [
                {"type": "text", "text": json.dumps({"nested": json.dumps({"k": plant("doubly escaped")})})},
                {"type": "text", "text": f"see /home/me/{plant('file name', 'ghp_{}')}/notes.txt"},
                {"type": "image_url", "image_url": {"url": f"https://x/y.png?key={plant('image url', 'AIza{}')}"}}]},
        ],
    }  # fmt: skip
    provider.answers.append(whole(f"I see {plant('answer')}."))
    raw = json.dumps(body, ensure_ascii=True).encode()
    assert say(daemon, raw)[0] == 200
    assert provider.seen[-1][2] == raw, "the provider gets every byte"


def test_what_comes_in_pieces(daemon: RunningDaemon, provider: Scripted) -> None:
    split, call, thought = plant("split over events"), plant("split tool call"), plant("split thinking")
    half = len(split) // 2
    provider.answers.append(
        streamed(
            {"role": "assistant", "reasoning_content": thought[:half]}, {"reasoning_content": thought[half:]},
            {"content": f"it is {split[:half]}"}, {"content": f"{split[half:]} indeed"},
            {"tool_calls": [{"index": 0, "id": "t", "type": "function", "function": {
                "name": "sh", "arguments": f'{{"cmd": "curl -H {call[:half]}'}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": f'{call[half:]}"}}'}}]},
        )
    )  # fmt: skip
    status, _, answered = say(daemon, asked("stream, please", stream=True))
    assert status == 200
    assert split[:half].encode() in answered, "the agent gets every byte"


def test_what_a_provider_says_when_it_fails(daemon: RunningDaemon, provider: Scripted) -> None:
    wrong = f"Incorrect API key provided: {plant('error body', 'sk-proj-{}')}."
    provider.answers.append(Bytes((json.dumps({"error": {"message": wrong}}).encode(),), status=401))
    assert say(daemon, asked("fail"))[0] == 401
    inside = f'data: {{"error":{{"message":"bad key {plant("error inside a stream")}"}}}}\n\n'
    provider.answers.append(Bytes((inside.encode(),), SSE))
    say(daemon, asked("fail inside", stream=True))
    provider.answers.append(Bytes((f"<html>{plant('body that is no JSON')}</html>".encode(),), "text/html", 502))
    say(daemon, asked("no json"))
    gone = asked("nobody there", model="lost")
    assert say(daemon, gone, f"{CHAT}?key={plant('query of a request that failed', '{}')}")[0] == 502
    assert say(daemon, b"{", f"{CHAT}?key={plant('query of a request that is none', '{}')}")[0] == 400
    assert say(daemon, b"{", f"/v1/none?api_key={plant('query on an unknown path', '{}')}")[0] in (400, 404, 502)


def test_what_stands_in_headers_of_ours(daemon: RunningDaemon, provider: Scripted) -> None:
    provider.answers.append(whole("ok"))
    said = {
        "x_reef_session_id": plant("session id"),
        "x_reef_cwd": quote(f"/home/me/{plant('working directory', 'ghp_{}')}"),
        "x_reef_commit": plant("commit"),
        "x_reef_adapter": plant("adapter"),
        "x_reef_tag_note": plant("tag"),
        "x_claude_code_agent_id": plant("sub-agent"),
        "x_session_id": plant("vendor's session id"),
        "user_agent": plant("user agent"),
        "traceparent": plant("traceparent"),
    }
    assert say(daemon, asked("headers"), **said)[0] == 200


def test_what_cannot_be_read(daemon: RunningDaemon, provider: Scripted) -> None:
    cut = f'{{"model": "m", "messages": [{{"role": "user", "content": "{plant("cut off JSON")}'
    assert say(daemon, cut.encode())[0] == 400
    provider.answers.append(Bytes((f'{{"choices": [{{"message": "{plant("cut off answer")}'.encode(),)))
    say(daemon, asked("cut answer"))
    provider.answers.append(Bytes((f'{{"said": "{plant("answer on an unknown path")}"}}'.encode(),)))
    assert say(daemon, asked(plant("body on an unknown path")), f"/v1/{plant('unknown path', 'ghp_{}')}")[0] == 200
    daemon.control("GET", f"/reef/{plant('path of the control plane')}")
    daemon.control("POST", "/reef/report", {"score": plant("bad score")})


def test_what_a_person_says(daemon: RunningDaemon, provider: Scripted) -> None:
    provider.answers.append(whole("rate me"))
    _, receipt, _ = say(daemon, asked("a person"))
    report = {
        "feedback": f"never print {plant('feedback')}",
        "references": [receipt],
        "metadata": {"edited": f"use {plant('edit')}", "more": plant("report metadata")},
    }
    assert daemon.control("POST", "/reef/report", report)[0] == 200
    assert daemon.control("POST", "/reef/train", {"text": f"always send {plant('instruction')}"})[0] == 200
    task = {"prompt": f"what is {plant('task prompt')}?", "check": {"form": "one_sentence"}}
    assert daemon.control("POST", "/reef/tasks", task)[0] == 200


def told(daemon: RunningDaemon, collector: Collector) -> dict[str, bytes]:
    """Everything that Reef tells, by where."""
    until(lambda: daemon.get("/reef/search?q=rate")["unindexed"] == 0, "the index")
    rows = daemon.get("/reef/records?limit=500")["items"]
    until(lambda: len(collector.spans()) >= len(rows), "the spans")
    found = {"spans": b"".join(collector.bodies)}
    for path in (
        "/reef/status", "/metrics", "/reef/records?limit=500", "/reef/sessions", "/reef/audit?limit=200",
        "/reef/export", "/reef/jobs", "/reef/tasks", "/reef/config", "/reef/search?q=key", "/reef/rollups",
    ):  # fmt: skip
        status, data = daemon.control("GET", path)
        assert status == 200, path
        found[path] = data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode()
    for row in rows:
        for what in (
            f"traces/{row['receipt']}",
            f"records/{row['receipt']}/request",
            f"records/{row['receipt']}/response",
        ):
            data = daemon.control("GET", f"/reef/{what}")[1]
            found[what] = data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode()
    job = daemon.control("POST", "/reef/jobs", {"recipe": "sft"})[1]["id"]
    found["training"] = json.dumps(daemon.control("GET", f"/reef/jobs/{job}/stream?kind=experience")[1]).encode()
    return found


def kept(home: Home) -> dict[str, bytes]:
    """Every file of the home, and every value in the database, decoded."""
    found = {
        str(path.relative_to(home.root)): path.read_bytes()
        for path in home.root.rglob("*")
        if path.is_file() and path.parent.name != "tokens"
    }
    db = sqlite3.connect(home.database)
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'words'").fetchall():
        values = (value for row in db.execute(f"SELECT * FROM {table}") for value in row)
        found[f"table {table}"] = b"\n".join(_plain(value) for value in values if isinstance(value, str | bytes))
    db.close()
    store = Store.open(home.database)
    with store._pool.reader() as reader:
        from daemon.store import messages

        ids = [id for (id,) in reader.db.execute("SELECT id FROM message")]
        found["messages"] = b"\n".join(one.raw + one.text.encode() for one in messages.messages(reader, ids))
        frames = [messages.frame(reader, id) for (id,) in reader.db.execute("SELECT id FROM frame").fetchall()]
        found["frames"] = b"\n".join(frame.head + frame.separator + frame.tail for frame in frames)
    store.close()
    return found


def _plain(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    try:
        return zstandard.ZstdDecompressor().decompress(value)
    except zstandard.ZstdError:
        return bytes(value)


def test_no_canary_got_through(daemon: RunningDaemon, provider: Scripted, collector: Collector) -> None:
    sinks = told(daemon, collector)
    daemon.stop()
    sinks |= kept(daemon.home)
    assert len(CANARIES) > 35
    assert not provider.answers, "each was asked for"
    assert b"[redacted:" in sinks["messages"], "the sinks were looked into"
    assert b"rate me" in sinks["messages"]
    leaks = {
        way: [where for where, data in sinks.items() if secret.encode() in data or secret[6:].lower().encode() in data]
        for way, secret in CANARIES.items()
    }
    through = {way: where for way, where in leaks.items() if where}
    assert not through, json.dumps(through, indent=1)
    assert Path(daemon.home.log).exists()
