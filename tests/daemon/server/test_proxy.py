"""The data plane against a scripted provider: bytes, receipts, ends, faults."""

import base64
import gzip
import json
import threading
from http.client import HTTPException, IncompleteRead
from typing import Any

import pytest
import zstandard

from daemon.core.paths import Home
from daemon.core.records import End
from daemon.store.db import Store
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.provider import Call, Fault, Provider, Turn, bash, running_provider

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
EVERY = pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
LAST = {CHAT: b"[DONE]", MESSAGES: b"message_stop", RESPONSES: b"response.completed"}
STREAM = pytest.mark.parametrize("stream", [True, False])


TURNS = (Turn("Hello from the provider."),)


CONFIG = """
server: {port: 0, max_body_mb: 2}
engine: openai
engines:
  openai: {base_url: "$URL/v1", api: openai}
  anthropic: {base_url: "$URL/v1", api: anthropic}
  responses: {base_url: "$URL/v1", dialects: responses}
  every: {base_url: "$URL/v1", dialects: [chat, messages, responses]}
  nobody: {base_url: "http://127.0.0.1:1/v1"}
models:
  "lost-*": nobody
  renamed: {engine: anthropic, model: claude-large}
  renamed-every: {engine: every, model: another}
"""


def ask(text: str, **fields: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": text}]
    # Each route has its own name for the list; the others' is an unknown field to it.
    return {"model": "scripted", "max_tokens": 50, "messages": said, "input": said, **fields}


def record(daemon: RunningDaemon, headers: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    return found


@EVERY
@STREAM
def test_bytes_pass_unchanged_both_ways(daemon: RunningDaemon, provider: Provider, path: str, stream: bool) -> None:
    """BUGS B181."""
    raw = json.dumps(ask("späte Blöcke", stream=stream, unknown={"a": [1.0, None]}), indent=1).encode()
    _, headers, answered = daemon.post(path, raw, anthropic_beta="made-up-2026-11-01")
    sent = provider.requests[-1]
    assert sent.body == raw
    assert sent.header("anthropic-beta") == "made-up-2026-11-01"
    assert sent.path == path
    assert headers["x-request-id"] == "req_fake"
    receipt = headers["x-reef-agent-record-id"]
    assert daemon.control("GET", f"/reef/records/{receipt}/request")[1] == raw
    assert daemon.control("GET", f"/reef/records/{receipt}/response")[1] == answered


#: What re-serialising would change: blanks, escapes, the order and forms of numbers, a key twice, a last line.
SIGNED = (
    '{ "max_tokens" : 50,\n\t"model":"%s", "temperature":1.0, "system":[{"text":"\\u00e9 é 😀 \\/","type":"text"}],\n'
    ' "messages" :[{"role":"user","content":"hi"},{"role":"assistant","content":[ {"type":"thinking",'
    '"thinking":"阴气 \\ud83d\\ude00 <b>&amp;</b> ","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h/+=="},'
    '{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3"},{"type":"text","text":"ok"}]},'
    '{"role":"user","content":"more"}], "x":1, "x":1E2 }\n'
)


@pytest.mark.parametrize(("asked", "sent"), [("scripted", "scripted"), ("renamed", "claude-large")])
def test_signed_thoughts_go_back_to_the_byte(daemon: RunningDaemon, provider: Provider, asked: str, sent: str) -> None:
    """BUGS B082: A signature covers what was written. Where a route names the model, that name alone is another."""
    assert daemon.post(MESSAGES, (SIGNED % asked).encode())[0] == 200
    assert provider.requests[-1].body == (SIGNED % sent).encode()


@pytest.mark.parametrize("signature", ["", "EqQBCgIYAhIM"])
def test_what_an_agent_says_of_a_signature_and_its_cache_marks_are_its_own(
    daemon: RunningDaemon, provider: Provider, signature: str
) -> None:
    """BUGS B086: An empty or a cut signature and all four marks that Anthropic allows: nothing taken, nothing added."""
    mark = {"cache_control": {"type": "ephemeral"}}
    thought = {"type": "thinking", "thinking": "hm", "signature": signature}
    said = [
        {"role": "user", "content": [{"type": "text", "text": "hi", **mark}]},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "yes", **mark}]},
        {"role": "user", "content": [{"type": "text", "text": "on", **mark}]},
    ]
    raw = json.dumps(ask("", system=[{"type": "text", "text": "rules", **mark}]) | {"messages": said}).encode()
    assert daemon.post(MESSAGES, raw)[0] == 200
    assert provider.requests[-1].body == raw


def test_a_provider_is_asked_for_an_encoding_that_can_be_recorded(daemon: RunningDaemon, provider: Provider) -> None:
    daemon.post(MESSAGES, ask("x"), accept_encoding="gzip, deflate, br, zstd")
    assert provider.requests[-1].header("accept-encoding") == "gzip, deflate, zstd"


def test_the_query_goes_along(daemon: RunningDaemon, provider: Provider) -> None:
    assert daemon.post(f"{MESSAGES}?beta=true", ask("x"))[0] == 200
    assert provider.requests[-1].query == "beta=true"


@STREAM
def test_receipt_and_release_come_at_the_start(daemon: RunningDaemon, provider: Provider, stream: bool) -> None:
    provider.pace = 0.05
    response = daemon.open(CHAT, ask("x", stream=stream))
    assert str(response.getheader("x-reef-agent-record-id")).startswith("rec_")
    assert response.getheader("x-reef-release-id") == "base"
    response.read()


@EVERY
@STREAM
def test_whoever_saw_the_end_finds_the_record(
    daemon: RunningDaemon, provider: Provider, path: str, stream: bool
) -> None:
    for _ in range(20):
        response = daemon.open(path, ask("x", stream=stream))
        last = LAST[path]
        seen = b""
        while chunk := response.read1(65536):
            seen += chunk
            if stream and last in seen:
                break  # a client acts on the last event, not on the connection's end
        receipt = response.getheader("x-reef-agent-record-id")
        assert daemon.control("GET", f"/reef/records/{receipt}")[1]["end"] == "ok"


@EVERY
def test_no_secret_of_the_agent_is_stored_and_reefs_own_stays_here(
    daemon: RunningDaemon, provider: Provider, path: str
) -> None:
    """BUGS B164."""
    key = "sk-ant-oat01-canary-of-a-person-0123456789abcdef"
    headers = {"authorization": f"Bearer {key}", "x-reef-token": daemon.agent_token, "x-reef-tag-run": "7"}
    response = daemon.open(path, ask("x"), headers=headers)
    response.read()
    sent = dict(provider.requests[-1].headers)
    assert sent["authorization"] == f"Bearer {key}"
    assert not [name for name in sent if name.startswith("x-reef")]
    assert daemon.agent_token not in str(sent)
    for file in daemon.home.root.rglob("*"):
        if file.is_file() and "tokens" not in file.parts:
            assert key.encode() not in file.read_bytes()


def test_reefs_token_is_not_sent_to_a_provider(daemon: RunningDaemon, provider: Provider) -> None:
    daemon.post(CHAT, ask("x"))
    assert daemon.agent_token not in str(provider.requests[-1].headers)


@EVERY
def test_a_refusal_keeps_its_status_headers_and_body(daemon: RunningDaemon, provider: Provider, path: str) -> None:
    provider.faults.append(Fault(status=429, headers={"retry-after": "7", "anthropic-ratelimit-requests-limit": "5"}))
    status, headers, raw = daemon.post(path, ask("x", stream=True))
    assert (status, headers["retry-after"], headers["anthropic-ratelimit-requests-limit"]) == (429, "7", "5")
    assert json.loads(raw)["error"]
    row = record(daemon, headers)
    assert (row["end"], row["status"], row["error"]) == ("error", 429, "the provider answered 429")


@pytest.mark.parametrize("status", [500, 529])
def test_a_server_error_is_passed_on(daemon: RunningDaemon, provider: Provider, status: int) -> None:
    provider.faults.append(Fault(status=status))
    assert daemon.post(MESSAGES, ask("x"))[0] == status


@pytest.mark.parametrize("fault", [Fault(drop=True)], ids=["dropped"])
@EVERY
def test_a_provider_that_breaks_before_answering_is_502_in_the_dialects_shape(
    daemon: RunningDaemon, provider: Provider, path: str, fault: Fault
) -> None:
    provider.faults.extend([fault] * 4)
    status, headers, raw = daemon.post(path, ask("x"))
    assert status == 502
    assert json.loads(raw)["error"]["message"]
    assert record(daemon, headers)["end"] == "error"


@EVERY
@STREAM
def test_a_provider_that_is_not_there_is_502_and_names_the_doctor(
    daemon: RunningDaemon, path: str, stream: bool
) -> None:
    """BUGS B027: As an error of its own, also to who asked for a stream: agents retry a 502, no error in a 200."""
    status, headers, raw = daemon.post(path, ask("x", model="lost-1", stream=stream))
    assert (status, headers["content-type"]) == (502, "application/json")
    error = json.loads(raw)
    assert "reef doctor" in error["error"]["message"]
    assert (error.get("type") == "error") is (path == MESSAGES)
    assert record(daemon, headers)["engine"] == "nobody"


def test_a_chat_stream_that_breaks_off_breaks_here_too_and_is_incomplete(
    daemon: RunningDaemon, provider: Provider
) -> None:
    """BUGS B026."""
    provider.faults.append(Fault(after=3))
    response = daemon.open(CHAT, ask("x", stream=True))
    receipt = response.getheader("x-reef-agent-record-id")
    with pytest.raises((IncompleteRead, ConnectionError, HTTPException)):
        response.read()
    assert daemon.get(f"/reef/records/{receipt}")["end"] == "incomplete"


@pytest.mark.parametrize("framing", ["plain", "halves"])
def test_a_messages_stream_that_breaks_off_ends_with_an_error_of_its_own(
    daemon: RunningDaemon, provider: Provider, framing: Any
) -> None:
    """BUGS B026: Anthropic's SDKs wait on a silent end; what is left of an unfinished event is not theirs to parse."""
    provider.framing = framing
    provider.faults.append(Fault(after=3))
    _, headers, raw = daemon.post(MESSAGES, ask("x", stream=True))
    events = [json.loads(frame.partition(b"data: ")[2]) for frame in raw.split(b"\n\n")[:-1]]
    assert events[0]["type"] == "message_start"
    assert (events[-1]["type"], events[-1]["error"]["type"]) == ("error", "api_error")
    row = record(daemon, headers)
    assert (row["end"], "broke off" in row["error"]) == ("incomplete", True)


@EVERY
@pytest.mark.parametrize(("framing", "fault"), [("only-pings", Fault()), ("plain", Fault(after=0))])
def test_a_stream_that_ends_before_its_first_word_is_502(
    daemon: RunningDaemon, provider: Provider, path: str, framing: Any, fault: Fault
) -> None:
    """BUGS B032: Pings, or nothing at all: agents ask again after a 502, and give up on a 200 that is empty."""
    provider.framing = framing
    provider.faults.append(fault)
    status, headers, raw = daemon.post(path, ask("x", stream=True))
    assert (status, headers["content-type"]) == (502, "application/json")
    assert "reef doctor" in json.loads(raw)["error"]["message"]
    row = record(daemon, headers)
    assert (row["end"], row["status"]) == ("error", 502)


def test_a_responses_stream_that_breaks_off_ends_with_a_failed_response(
    daemon: RunningDaemon, provider: Provider
) -> None:
    """BUGS B026: Codex reads no ``error`` event, and OpenAI's client none of another response's id."""
    provider.faults.append(Fault(after=3))
    _, headers, raw = daemon.post(RESPONSES, ask("x", stream=True))
    events = [json.loads(frame.partition(b"data: ")[2]) for frame in raw.split(b"\n\n")[:-1]]
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["id"] == events[0]["response"]["id"]
    assert record(daemon, headers)["end"] == "incomplete"


@EVERY
def test_an_error_inside_a_200_is_no_success(daemon: RunningDaemon, provider: Provider, path: str) -> None:
    provider.faults.append(Fault(error_after=2))
    _, headers, _ = daemon.post(path, ask("x", stream=True))
    assert record(daemon, headers)["end"] != "ok"


@EVERY
@pytest.mark.parametrize("gzip", [True, False])
def test_an_error_as_a_whole_200_is_no_success(
    daemon: RunningDaemon, provider: Provider, path: str, gzip: bool
) -> None:
    provider.gzip = gzip
    provider.faults.append(Fault(error_after=2) if gzip else Fault(status=200))
    _, headers, _ = daemon.post(path, ask("x", stream=gzip))
    assert record(daemon, headers)["end"] == "error"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_compressed_request_passes_as_it_is_and_is_read_for_the_record(
    daemon: RunningDaemon, provider: Provider, encoding: str
) -> None:
    """BUGS B049."""
    plain = json.dumps(ask("compressed")).encode()
    raw = gzip.compress(plain) if encoding == "gzip" else zstandard.compress(plain)
    _, headers, _ = daemon.post(CHAT, raw, content_encoding=encoding)
    assert provider.requests[-1].body == raw
    assert daemon.control("GET", f"/reef/records/{headers['x-reef-agent-record-id']}/request")[1] == plain


def test_an_encoding_nobody_knows_is_refused_by_name(daemon: RunningDaemon) -> None:
    status, _, raw = daemon.post(CHAT, b"x", content_encoding="zip")
    assert status == 400
    assert "zip" in json.loads(raw)["error"]["message"]


def test_a_compressed_answer_passes_as_it_is_and_is_read_for_the_record(
    daemon: RunningDaemon, provider: Provider
) -> None:
    provider.gzip = True
    _, headers, raw = daemon.post(CHAT, ask("x"), accept_encoding="gzip")
    assert headers["content-encoding"] == "gzip"
    assert "Hello from the provider." in gzip.decompress(raw).decode()
    assert record(daemon, headers)["preview"].startswith("Hello from the provider.")


@pytest.mark.parametrize("framing", ["crlf", "no-space", "comments", "tiny"])
@EVERY
def test_any_framing_of_a_stream_is_complete(
    daemon: RunningDaemon, provider: Provider, path: str, framing: Any
) -> None:
    """BUGS B001, B002."""
    provider.framing = framing
    _, headers, _ = daemon.post(path, ask("x", stream=True))
    row = record(daemon, headers)
    assert (row["end"], row["preview"]) == ("ok", "Hello from the provider.")


@EVERY
@STREAM
def test_what_was_used_is_counted(daemon: RunningDaemon, provider: Provider, path: str, stream: bool) -> None:
    """Chat's comes in a chunk of its own, whose list of choices is empty."""
    _, headers, _ = daemon.post(path, ask("x", stream=stream, stream_options={"include_usage": True}))
    row = record(daemon, headers)
    assert (row["prompt_tokens"] > 8, row["cached_tokens"], row["completion_tokens"]) == (True, 8, 42)


@EVERY
def test_letters_that_chunks_cut_stay_whole(daemon: RunningDaemon, provider: Provider, path: str) -> None:
    """BUGS B019, B022: In words and in a call's arguments, for the client and for the record."""
    provider.turns = (Turn("阴气渐重 🐟", (Call("bash", '{"command":"echo 阴气 😀"}'),)),)
    provider.framing = "tiny"
    _, headers, raw = daemon.post(path, ask("x", stream=True))
    assert "阴气渐重" in raw.decode()
    receipt = headers["x-reef-agent-record-id"]
    assert daemon.control("GET", f"/reef/records/{receipt}/response")[1] == raw
    words, call = daemon.get(f"/reef/traces/{receipt}")["records"][-1]["answer"]["parts"]
    assert (words["text"], json.loads(call["arguments"])) == ("阴气渐重 🐟", {"command": "echo 阴气 😀"})


@EVERY
def test_a_call_of_a_tool_that_there_is_none_of_is_kept_as_it_came(
    daemon: RunningDaemon, provider: Provider, path: str
) -> None:
    """BUGS B081: vercel/ai#2786: models make some up. The agent says so; the record shows it."""
    provider.turns = (Turn("", (Call("multi_tool_use.parallel", {"tool_uses": []}),)),)
    _, headers, raw = daemon.post(path, ask("x", stream=True))
    assert b"multi_tool_use.parallel" in raw
    receipt = headers["x-reef-agent-record-id"]
    (call,) = daemon.get(f"/reef/traces/{receipt}")["records"][-1]["answer"]["parts"]
    assert (record(daemon, headers)["end"], call["name"]) == ("ok", "multi_tool_use.parallel")


TOOLS: dict[str, dict[str, Any]] = {
    CHAT: {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}},
    MESSAGES: {"name": "bash", "input_schema": {"type": "object"}},
    RESPONSES: {"type": "function", "name": "bash", "parameters": {"type": "object"}},
}


@EVERY
@STREAM
def test_tool_calls_are_kept_with_names_and_arguments(
    daemon: RunningDaemon, provider: Provider, path: str, stream: bool
) -> None:
    provider.turns = (Turn("I look.", (bash("ls -la"), bash("pwd"))),)
    _, headers, _ = daemon.post(path, ask("x", stream=stream, tools=[TOOLS[path]]))
    trace = daemon.get(f"/reef/traces/{headers['x-reef-agent-record-id']}")
    parts = trace["records"][-1]["answer"]["parts"]
    assert [part["type"] for part in parts] == ["text", "tool_use", "tool_use"]
    assert [part["name"] for part in parts[1:]] == ["bash", "bash"]
    assert [json.loads(part["arguments"])["command"] for part in parts[1:]] == ["ls -la", "pwd"]


SEAL = base64.b64encode(bytes(range(256)) * 4).decode()
THOUGHTS: dict[str, list[dict[str, Any]]] = {
    CHAT: [{"role": "assistant", "content": "a", "reasoning_details": [{"type": "reasoning.encrypted", "data": SEAL}]}],
    MESSAGES: [
        {
            "role": "assistant",
            "content": [
                {"data": SEAL, "type": "redacted_thinking"},
                {"signature": SEAL, "thinking": "h\u00e4\u200b", "type": "thinking"},
                {"type": "text", "text": "a"},
            ],
        }
    ],
    RESPONSES: [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEAL},
        {"role": "assistant", "content": "a"},
    ],
}


@EVERY
@pytest.mark.parametrize("model", ["scripted", "renamed-every"])
def test_sealed_thoughts_pass_and_are_kept_to_the_byte(
    daemon: RunningDaemon, provider: Provider, path: str, model: str
) -> None:
    """BUGS B087: What comes back altered is refused (claude-code#63265); also where the model has another name."""
    said = [{"role": "user", "content": "go"}, *THOUGHTS[path], {"role": "user", "content": "on"}]
    raw = json.dumps(ask("", model=model) | {"messages": said, "input": said}, indent=1).replace("/", "\\/").encode()
    _, headers, _ = daemon.post(path, raw)
    assert provider.requests[-1].body == raw.replace(b'"renamed-every"', b'"another"')
    receipt = headers["x-reef-agent-record-id"]
    assert daemon.control("GET", f"/reef/records/{receipt}/request")[1] == raw


@EVERY
@pytest.mark.parametrize("raw", [b"{", b"[]", b"\xff\xfe", b'{"model": 3}', b""])
def test_a_body_that_is_no_request_is_400_in_the_dialects_shape(daemon: RunningDaemon, path: str, raw: bytes) -> None:
    status, headers, answered = daemon.post(path, raw)
    assert status == 400
    assert json.loads(answered)["error"]["message"]
    assert record(daemon, headers)["end"] == "error"


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES, f"{MESSAGES}/count_tokens", "/v1/embeddings"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_413_for_clients_that_send_it_all_first(
    daemon: RunningDaemon, path: str, chunked: bool
) -> None:
    """BUGS B066, B069."""
    raw = json.dumps(ask("x" * 30_000_000)).encode()
    connection = daemon.connect()
    connection.request("POST", path, iter([raw]) if chunked else raw, daemon.headers())
    response = connection.getresponse()
    assert response.status == 413
    assert "max_body_mb" in json.loads(response.read())["error"]["message"]


def test_a_client_that_asks_before_it_sends_too_much_is_answered_at_once(daemon: RunningDaemon) -> None:
    connection = daemon.connect()
    connection.putrequest("POST", CHAT)
    for name, value in {**daemon.headers(), "expect": "100-continue", "content-length": str(3 << 20)}.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413


def test_a_body_of_a_megabyte_passes(daemon: RunningDaemon, provider: Provider) -> None:
    provider.echo = True
    raw = json.dumps(ask("x" * 1_000_000)).encode()
    _, headers, _ = daemon.post(CHAT, raw)
    assert provider.requests[-1].body == raw
    assert daemon.control("GET", f"/reef/records/{headers['x-reef-agent-record-id']}/request")[1] == raw


def test_a_retry_after_a_failure_counts_once(daemon: RunningDaemon, provider: Provider) -> None:
    provider.faults.append(Fault(status=500))
    body = ask("a request that is retried")
    first, second = (daemon.post(CHAT, body, x_session_id="retry-1")[1] for _ in range(2))
    session = record(daemon, second)["session"]
    assert record(daemon, first)["session"] == session
    turns = [row["turns"] for row in daemon.get("/reef/sessions")["items"] if row["id"] == session]
    assert turns == [1]


def test_what_the_daemons_end_cuts_off_is_told_and_recorded(reef_home: Home) -> None:
    with running_provider() as hanging:
        hanging.faults.append(Fault(hang=True))
        config = f'server: {{port: 0, drain_seconds: 0}}\nengine: p\nengines: {{p: {{base_url: "{hanging.url}/v1"}}}}\n'
        with running_daemon(reef_home, config) as stopping:
            told: list[tuple[int, dict[str, str], bytes]] = []
            asking = threading.Thread(target=lambda: told.append(stopping.post(CHAT, ask("wait"))))
            asking.start()
            until(lambda: hanging.requests, "the request's arrival")
            stopping.process.terminate()
            asking.join()
    status, _, body = told[0]
    assert (status, json.loads(body)["error"]["code"]) == (503, "engine_unavailable")
    store = Store.open(reef_home.database)
    rows, _ = store.records()
    store.close()
    assert [(row.end, row.error) for row in rows] == [(End.CANCELLED, "the daemon stopped")]
