"""The engine inside, through the whole daemon: many at once, growing conversations, leaving, overflowing."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse, IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.e2e.conftest import add_model
from tests.e2e.test_kill import worker_of
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon, until
from tests.fakes.loop import engine_of
from tests.fakes.sockets import elsewhere

pytestmark = pytest.mark.engine
CHAT = "/v1/chat/completions"


def ask(daemon: RunningDaemon, text: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    """One answer in full; returns the receipt and the body."""
    body = {"model": "default", "messages": [{"role": "user", "content": text}], "temperature": 0} | fields
    status, headers, raw = daemon.post(CHAT, body)
    assert status == 200, raw
    return headers["x-reef-agent-record-id"], json.loads(raw)


def test_eight_at_once_are_all_answered_and_none_is_mixed(embedded: RunningDaemon) -> None:
    """Each client may only be given its own word: a grammar per request, so that any mixing shows."""
    ready = threading.Barrier(8)

    def client(number: int) -> tuple[str, str]:
        word = f"marker-{number}-{number * 7919 % 1000}"
        schema = {"type": "object", "properties": {"word": {"const": word}}, "required": ["word"]}
        ready.wait(30)
        receipt, body = ask(
            embedded,
            f"Client {number} says {word}. Repeat the word.",
            response_format={"type": "json_schema", "json_schema": {"name": "w", "schema": schema}},
            max_tokens=40,
        )
        assert json.loads(body["choices"][0]["message"]["content"]) == {"word": word}
        return receipt, word

    with ThreadPoolExecutor(8) as pool:
        answered = list(pool.map(client, range(8)))
    for receipt, word in answered:
        request = embedded.control("GET", f"/reef/records/{receipt}/request")[1]
        response = embedded.control("GET", f"/reef/records/{receipt}/response")[1]
        assert word.encode() in request
        assert word.encode() in response
    assert len({receipt for receipt, _ in answered}) == 8


def test_an_answer_from_the_engine_inside_stays_on_the_machine(embedded: RunningDaemon) -> None:
    """No socket of the daemon, the engine or anything they started leaves loopback, before, during or after."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, embedded, "Tell me of a whale that stayed at home.", max_tokens=32)
        while not asked.done():
            assert elsewhere(embedded.process.pid) == []
            time.sleep(0.01)
        asked.result()
    assert elsewhere(embedded.process.pid) == []


_WATCHED = """
import os, sys
def tell(line):
    with open(os.environ["SEEN"], "a") as file:
        file.write(line + "\\n")
def seen(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"):
        tell(f"{event} {arguments[-1] if event == 'socket.connect' else arguments}")
tell(f"watched {os.getpid()}")
sys.addaudithook(seen)
"""


def test_no_name_is_looked_up_and_no_address_called_while_the_engine_inside_answers(
    reef_home: Home, model_path: Path, tmp_path: Path
) -> None:
    """BUGS B171: Not for a moment, from start to stop, with nothing configured (MetaClaw#52: prompts went to a third
    party).
    """
    (tmp_path / "sitecustomize.py").write_text(_WATCHED)
    seen = tmp_path / "seen"
    environment = {"SEEN": str(seen), "PYTHONPATH": f"{tmp_path}:{REPOSITORY}"}
    with running_daemon(reef_home, environment=environment) as daemon:
        add_model(daemon, model_path)
        receipt, _ = ask(daemon, "Tell me of a whale that stayed at home.", max_tokens=4)
        daemon.control("POST", "/reef/report", {"score": 1.0, "references": [receipt]})
        for path in ("/reef/status", "/reef/models", "/metrics", "/reef/export"):
            assert daemon.control("GET", path)[0] == 200
        watched = {f"watched {pid}" for pid in (daemon.process.pid, worker_of(daemon.process.pid))}
    told = set(seen.read_text().splitlines())
    assert watched <= told
    assert [line for line in told if not line.startswith("watched ")] == []
    program = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('127.0.0.1', 9))"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, check=True)
    assert "socket.connect ('127.0.0.1', 9)" in seen.read_text(), "the watch works"


def test_eight_together_are_at_least_as_fast_as_one(embedded: RunningDaemon) -> None:
    """Tokens a second of all eight together against one alone; a busy machine slows either of them now and then."""

    def tokens(number: int) -> int:
        _, body = ask(embedded, f"Tell me a story about whale number {number}.", max_tokens=48)
        return int(body["usage"]["completion_tokens"])

    def speed(clients: int) -> float:
        start = time.monotonic()
        with ThreadPoolExecutor(clients) as pool:
            total = sum(pool.map(tokens, range(clients)))
        return total / (time.monotonic() - start)

    tokens(0)  # loaded before anything is measured
    ratios = []
    for _ in range(5):
        ratios.append(speed(8) / speed(1))
        if ratios[-1] >= 1:
            return
    raise AssertionError(ratios)


def test_a_growing_conversation_reads_only_what_is_new(embedded: RunningDaemon) -> None:
    messages: list[dict[str, str]] = [{"role": "system", "content": "You answer in a few words. " * 40}]
    told: list[tuple[int, int, int]] = []
    for turn in range(6):  # twelve: tests/daemon/engines/test_llama_cpp.py
        messages.append({"role": "user", "content": f"Question {turn}: name an animal that lives in the sea."})
        receipt, body = ask(embedded, "", messages=messages, max_tokens=16)
        messages.append({"role": "assistant", "content": body["choices"][0]["message"]["content"]})
        row = embedded.get(f"/reef/records/{receipt}")
        told.append((row["prompt_tokens"], row["cached_tokens"], row["completion_tokens"]))
    sessions = embedded.get("/reef/sessions?limit=1")["items"]
    assert sessions[0]["turns"] == 6
    for (before, _, answered), (prompt, cached, _) in itertools.pairwise(told):
        # Everything up to the end of the last answer stays read; at most its last token is read again.
        assert cached >= before + answered - 2
        assert prompt - cached <= 40
    read = sum(prompt - cached for prompt, cached, _ in told[1:])
    assert read < sum(prompt for prompt, _, _ in told[1:]) / 8


def test_what_claude_code_changes_in_each_request_costs_no_reading(embedded: RunningDaemon) -> None:
    """Its billing block and its cache marks (claude-code-router#1343): each turn reads less than a tenth anew."""
    marked = {"cache_control": {"type": "ephemeral"}}
    rules = {"type": "text", "text": "You answer in a few words. " * 60, **marked}
    messages: list[dict[str, Any]] = []
    for turn in range(4):
        bill = {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.{turn}; cch={turn * 7919:05x};"}
        for message in messages:
            message["content"] = [{"type": "text", "text": message["content"][0]["text"]}]
        messages.append(
            {"role": "user", "content": [{"type": "text", "text": f"Name a whale, number {turn}.", **marked}]}
        )
        body = {"model": "default", "system": [bill, rules], "messages": messages, "max_tokens": 12}
        status, headers, raw = embedded.post("/v1/messages", body)
        assert status == 200, raw
        messages.append({"role": "assistant", "content": json.loads(raw)["content"]})
        row = embedded.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
        assert row["prompt_tokens"] > 300
        if turn:
            assert row["prompt_tokens"] - row["cached_tokens"] < row["prompt_tokens"] / 10, turn


def test_generation_stops_within_a_second_of_the_client_leaving(embedded: RunningDaemon) -> None:
    """The best of three: a busy machine is late now and then."""
    assert min(_left(embedded) for _ in range(3)) < 1.0


def _left(embedded: RunningDaemon) -> float:
    """Seconds until the engine rests after a client left."""
    response = embedded.open(
        CHAT,
        {"model": "default", "messages": [{"role": "user", "content": "Count to a million."}], "stream": True},
    )
    receipt = response.getheader("x-reef-agent-record-id")
    response.read(200)
    left = time.monotonic()
    response.close()
    embedded._connections[-1].close()
    until(lambda: _engine(embedded)["running"] == 0, "the engine stopping")
    seconds = time.monotonic() - left
    row = until(lambda: _found(embedded, str(receipt)), "the record of a client that left")
    assert row["end"] == "cancelled"
    return seconds


def _going_on(embedded: RunningDaemon, path: str, body: dict[str, Any]) -> tuple[HTTPResponse, bytes] | None:
    """An answer of which more is to come; None where it ended before, as while an engine that was killed comes back."""
    response, raw = embedded.open(path, body), b""
    while raw.count(b"delta") < 8:
        if not (chunk := response.read1()):
            return None
        raw += chunk
    return response, raw


@pytest.mark.parametrize(
    ("path", "end"), [(CHAT, b""), ("/v1/messages", b"event: error"), ("/v1/responses", b"event: response.failed")]
)
def test_an_engine_that_dies_while_it_answers_is_told_as_each_client_understands_it(
    embedded: RunningDaemon, path: str, end: bytes
) -> None:
    """Agents that speak chat ask again where the connection breaks; the others wait for an event that says so."""
    said = [{"role": "user", "content": "Count to a million."}]
    body = {"model": "default", "max_tokens": 400, "messages": said, "input": said, "stream": True}
    response, raw = until(lambda: _going_on(embedded, path, body), "an answer that goes on")
    receipt = response.getheader("x-reef-agent-record-id")
    pid = worker_of(embedded.process.pid)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    try:
        raw, broke = raw + response.read(), False
    except IncompleteRead as error:
        raw, broke = raw + error.partial, True
    assert broke is (path == CHAT)
    assert end in raw
    assert not any(word in raw for word in (b"[DONE]", b"message_stop", b"response.completed"))
    assert (b"error" in raw) is (path != CHAT)
    assert embedded.get(f"/reef/records/{receipt}")["end"] == "incomplete"
    ask(embedded, "Say hi.", max_tokens=2)


def test_a_prompt_longer_than_the_context_is_the_dialects_own_error(embedded: RunningDaemon) -> None:
    long = [{"role": "user", "content": "word " * 20_000}]
    status, headers, raw = embedded.post(CHAT, {"model": "default", "messages": long})
    error = json.loads(raw)["error"]
    assert (status, error["code"]) == (400, "context_length_exceeded")
    assert "maximum context length is" in error["message"]
    row = embedded.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    assert (row["end"], row["status"]) == ("error", 400)
    status, _, raw = embedded.post("/v1/messages", {"model": "default", "max_tokens": 5, "messages": long})
    assert status == 400
    assert "prompt is too long" in json.loads(raw)["error"]["message"]


def test_tokens_are_captured_with_their_probabilities_and_weights(embedded: RunningDaemon) -> None:
    receipt, body = ask(embedded, "Name a colour.", max_tokens=8)
    row = embedded.get(f"/reef/records/{receipt}")
    assert row["completion_tokens"] == body["usage"]["completion_tokens"]
    active = embedded.get("/reef/models")["items"][0]
    assert row["weights"] == active["sha256"]


def test_count_tokens_agrees_with_what_is_read(embedded: RunningDaemon) -> None:
    messages = [{"role": "user", "content": "How many tokens is this?"}]
    _, _, raw = embedded.post("/v1/messages/count_tokens", {"model": "default", "messages": messages})
    status, _, answer = embedded.post("/v1/messages", {"model": "default", "max_tokens": 4, "messages": messages})
    usage = json.loads(answer)["usage"]
    assert status == 200
    assert json.loads(raw)["input_tokens"] == usage["input_tokens"] + usage.get("cache_read_input_tokens", 0)


def test_input_tokens_agree_with_what_is_read_of_the_whole_conversation(embedded: RunningDaemon) -> None:
    path, fields = "/v1/responses", {"model": "default", "instructions": "Be brief.", "temperature": 0}
    first = json.loads(embedded.post(path, fields | {"input": "How many tokens?", "max_output_tokens": 8})[2])
    asked = fields | {"input": "And now?", "previous_response_id": first["id"]}
    counted = json.loads(embedded.post(f"{path}/input_tokens", asked)[2])
    second = json.loads(embedded.post(path, asked | {"max_output_tokens": 8})[2])
    assert counted == {"object": "response.input_tokens", "input_tokens": second["usage"]["input_tokens"]}
    assert counted["input_tokens"] > first["usage"]["input_tokens"]


def test_models_are_listed_for_both_vendors_clients(embedded: RunningDaemon) -> None:
    listed = json.loads(embedded.open("/v1/models", b"", method="GET").read())
    assert listed["object"] == "list"
    assert {entry["id"] for entry in listed["data"]} >= {"default", "smollm2"}
    assert listed["has_more"] is False
    assert embedded.open("/v1/models/default", b"", method="GET").status == 200
    assert embedded.open("/v1/models/nobody", b"", method="GET").status == 404


def _found(daemon: RunningDaemon, receipt: str) -> Any:
    status, data = daemon.control("GET", f"/reef/records/{receipt}")
    return data if status == 200 else None


def _engine(daemon: RunningDaemon) -> Any:
    return next(engine for engine in daemon.get("/reef/status")["engines"] if engine["kind"] == "llama.cpp")


@pytest.mark.slow
def test_an_engine_that_freezes_ends_streams_in_their_own_form_and_answers_who_has_nothing_yet(
    embedded: RunningDaemon,
) -> None:
    """After three signs of life that did not come, 15 s. Clients of chat see the connection break, and ask again."""
    said = [{"role": "user", "content": "Tell me a very long story."}]
    long: dict[str, Any] = {"model": "default", "max_tokens": 3000, "max_output_tokens": 3000, "stream": True}
    streams = {
        path: embedded.open(path, long | {"messages": said, "input": said})
        for path in (CHAT, "/v1/messages", "/v1/responses")
    }
    begun = {path: stream.read1() for path, stream in streams.items()}
    worker = engine_of(embedded.process.pid)
    assert worker is not None
    os.kill(worker, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, embedded, "Hi", max_tokens=2)
        with pytest.raises(IncompleteRead):
            streams[CHAT].read()
        ends = {path: begun[path] + stream.read() for path, stream in streams.items() if path != CHAT}
        assert waiting.result()[1]["choices"]
    for raw in ends.values():
        last = json.loads(raw.split(b"data: ")[-1])
        message = last.get("response", last)["error"]["message"]
        assert "no sign of life" in message
    for path in streams:
        row = embedded.get(f"/reef/records/{streams[path].headers['x-reef-agent-record-id']}")
        assert (row["end"], row["error"].partition(" gave no")[0]) == ("incomplete", "the engine's process")
