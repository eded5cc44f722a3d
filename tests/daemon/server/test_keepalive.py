"""A silent stream says so in its dialect's own form: before the first byte, between events, never inside one."""

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.daemon import RunningDaemon
from tests.fakes.provider import Fault, Provider, Turn

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
EVERY = pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
PING = b'event: ping\ndata: {"type":"ping"}\n\n'
COMMENT = b": keep-alive\n\n"  # clients of Responses take no event before the first of the answer
SILENCE = 0.03


TURNS = (Turn("Hello after a while."),)


CONFIG = f"""
server: {{port: 0, keepalive_seconds: {SILENCE}}}
engine: openai
engines:
  openai: {{base_url: "$URL/v1", api: openai}}
  anthropic: {{base_url: "$URL/v1", api: anthropic}}
  responses: {{base_url: "$URL/v1", dialects: responses}}
models: {{twice: [openai, openai], by-chat: openai, by-messages: anthropic}}
"""


def ask(model: str = "slow", *, stream: bool = True) -> dict[str, Any]:
    said = [{"role": "user", "content": "hi"}]
    return {"model": model, "max_tokens": 50, "stream": stream, "messages": said, "input": said}


def frames(raw: bytes) -> list[bytes]:
    """Every event, whole; each of ours and of the provider's must be one that its clients can parse."""
    assert raw.endswith(b"\n\n")
    found = [frame + b"\n\n" for frame in raw.split(b"\n\n")[:-1]]
    for frame in found:
        if frame == COMMENT:
            continue
        data = frame[frame.index(b"data: ") + 6 :].strip()
        assert data == b"[DONE]" or isinstance(json.loads(data), dict)
    return found


def is_ours(frame: bytes) -> bool:
    return frame in (PING, COMMENT) or b"chatcmpl-reef" in frame


def split(raw: bytes) -> tuple[int, bytes]:
    """(keep-alives, the bytes without them)"""
    found = frames(raw)
    return sum(map(is_ours, found)), b"".join(frame for frame in found if not is_ours(frame))


def hear(
    daemon: RunningDaemon, provider: Provider, path: str, *faults: Fault, keepalives: int = 1, model: str = "slow"
) -> tuple[int, dict[str, str], bytes]:
    """An answer whose first fault happens once that many keep-alives came, however long they take."""
    held = threading.Event()
    provider.faults.extend([replace(faults[0], held=held), *faults[1:]])
    try:
        response = daemon.open(path, ask(model), headers={"accept-encoding": "gzip"} if provider.gzip else None)
        raw = b""
        while raw.count(b"\n\n") < keepalives:
            raw += (more := response.read1())
            assert more, raw
    finally:
        held.set()
    raw += response.read()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, raw


@EVERY
def test_a_provider_that_is_slow_to_begin(daemon: RunningDaemon, provider: Provider, path: str) -> None:
    """BUGS B004, B034, B036, B044."""
    _, usual = split(daemon.post(path, ask())[2])
    status, headers, raw = hear(daemon, provider, path, Fault(), keepalives=2)
    count, rest = split(raw)
    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert count >= 2
    assert _without_ids(rest) == _without_ids(usual)
    row = daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    assert (row["end"], row["status"], row["preview"]) == ("ok", 200, "Hello after a while.")
    kept = daemon.control("GET", f"/reef/records/{headers['x-reef-agent-record-id']}/response")[1]
    assert kept == rest  # ours are not the provider's words


def _without_ids(raw: bytes) -> list[str]:
    return [frame.decode().partition('"created"')[0].partition("msg_")[0][:30] for frame in frames(raw)]


@EVERY
def test_a_provider_that_pauses(daemon: RunningDaemon, provider: Provider, path: str) -> None:
    provider.pace = SILENCE * 4  # several times: a busy machine is late for some of them
    _, headers, raw = daemon.post(path, ask())
    count, rest = split(raw)
    assert count >= 1
    assert daemon.control("GET", f"/reef/records/{headers['x-reef-agent-record-id']}/response")[1] == rest


@EVERY
def test_never_inside_an_event(daemon: RunningDaemon, provider: Provider, path: str) -> None:
    provider.framing, provider.pace = "halves", SILENCE * 3
    count, rest = split(daemon.post(path, ask())[2])
    assert count >= 1
    assert any(end in rest for end in (b"[DONE]", b"message_stop", b"response.completed"))


@EVERY
def test_an_error_that_comes_too_late_for_its_status_ends_the_stream(
    daemon: RunningDaemon, provider: Provider, path: str
) -> None:
    status, headers, raw = hear(daemon, provider, path, Fault(status=429))
    assert status == 200
    last = json.loads(frames(raw)[-1].partition(b"data: ")[2])
    error = last["response"]["error"] if path == RESPONSES else last["error"]
    assert "rate_limit" in error["code" if path == RESPONSES else "type"]
    assert "the provider answered 429" in error["message"]
    row = daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    assert (row["end"], row["error"]) == ("error", "the provider answered 429")


@EVERY
def test_a_break_before_the_first_byte_is_told_too(daemon: RunningDaemon, provider: Provider, path: str) -> None:
    # a stale connection is replaced
    _, headers, raw = hear(daemon, provider, path, Fault(drop=True), Fault(drop=True))
    last = json.loads(frames(raw)[-1].partition(b"data: ")[2])
    assert "reef doctor" in last.get("response", last)["error"]["message"]
    assert daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")["end"] == "error"


def test_the_next_engine_may_still_answer(daemon: RunningDaemon, provider: Provider) -> None:
    _, headers, raw = hear(daemon, provider, CHAT, Fault(status=503), model="twice")
    count, rest = split(raw)
    assert count >= 1
    assert rest.endswith(b"data: [DONE]\n\n")
    assert daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")["end"] == "ok"


def test_a_compressed_answer_goes_on_in_plain_where_keep_alives_went_before(
    daemon: RunningDaemon, provider: Provider
) -> None:
    provider.gzip = True
    _, headers, raw = hear(daemon, provider, MESSAGES, Fault())
    assert "content-encoding" not in headers
    count, rest = split(raw)
    assert count >= 1
    assert b"message_stop" in rest


@EVERY
def test_who_did_not_ask_for_a_stream_waits_for_the_status(
    daemon: RunningDaemon, provider: Provider, path: str
) -> None:
    provider.faults.append(Fault(wait=SILENCE * 3, status=429, headers={"retry-after": "3"}))
    status, headers, _ = daemon.post(path, ask(stream=False))
    assert (status, headers["retry-after"]) == (429, "3")


@pytest.mark.parametrize(
    ("path", "model", "ours"),
    [
        (CHAT, "by-messages", b'"delta":{}'),
        (MESSAGES, "by-chat", PING),
        (RESPONSES, "by-chat", b"event: keepalive\n"),
    ],
)
def test_a_provider_of_another_dialect_that_is_slow_and_pauses(
    daemon: RunningDaemon, provider: Provider, path: str, model: str, ours: bytes
) -> None:
    """In the agent's own form, also between the events of a translated answer; and it is whole."""
    provider.pace = SILENCE * 4
    _, headers, raw = hear(daemon, provider, path, Fault(), model=model)
    found = frames(raw)
    first = next(i for i, frame in enumerate(found) if not is_ours(frame))
    assert first >= 1
    assert any(ours in frame for frame in found[first + 1 :])
    row = daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    assert (row["end"], row["preview"]) == ("ok", "Hello after a while.")
