"""A model name with several engines: who is asked, when the next one is, and what an agent sees."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Fault, Provider, Turn, running_provider

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Provider, Provider]]:
    with running_provider((Turn("From the first."),)) as first, running_provider((Turn("From the second."),)) as second:
        yield first, second


@pytest.fixture
def providers(running: tuple[Provider, Provider]) -> Iterator[tuple[Provider, Provider]]:
    yield running
    for provider in running:
        provider.requests.clear()
        provider.faults.clear()


@pytest.fixture(scope="module")
def daemon(module_home: Home, running: tuple[Provider, Provider]) -> Iterator[RunningDaemon]:
    first, second = (provider.url for provider in running)
    config = f"""
server: {{port: 0}}
engines:
  first: {{base_url: "{first}/v1"}}
  second: {{base_url: "{second}/v1", key: none}}
  claude: {{base_url: "{second}/v1", api: anthropic, key: "env:FALLBACK_KEY"}}
  lost: {{base_url: "http://127.0.0.1:1/v1", key: none}}
models:
  both: [first, {{engine: second, model: "vendor/large"}}]
  alone: {{engine: second, model: "vendor/large"}}
  from-lost: [lost, second]
  inside-then-out: [embedded, second]
  all-lost: [lost, lost]
  inside-only: embedded
  "claude-*": {{engine: claude, model: "claude-large"}}
"""
    with running_daemon(module_home, config, environment={"FALLBACK_KEY": "sk-fallback-0123456789"}) as running_one:
        yield running_one


def ask(model: str, **fields: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}], **fields}


def test_the_first_engine_answers_while_it_can(daemon: RunningDaemon, providers: tuple[Provider, Provider]) -> None:
    status, _, raw = daemon.post(CHAT, ask("both"))
    assert (status, b"From the first." in raw, len(providers[1].requests)) == (200, True, 0)


@pytest.mark.parametrize(
    "fault", [Fault(status=429, headers={"retry-after": "9"}), Fault(status=500), Fault(status=529)]
)
@pytest.mark.parametrize("stream", [True, False])
def test_the_next_is_asked_by_its_own_name_for_the_model(
    daemon: RunningDaemon, providers: tuple[Provider, Provider], fault: Fault, stream: bool
) -> None:
    providers[0].faults.append(fault)
    status, headers, raw = daemon.post(CHAT, ask("both", stream=stream, unknown=[1.0]))
    assert (status, b"second" in raw, "retry-after" in headers) == (200, True, False)
    assert providers[1].requests[0].body == json.dumps(ask("vendor/large", stream=stream, unknown=[1.0])).encode()
    assert providers[1].requests[0].header("authorization") is None
    row = daemon.get(f"/reef/records/{headers['x-reef-agent-record-id']}")
    assert (row["engine"], row["model_asked"], row["end"]) == ("second", "both", "ok")


def test_a_fault_of_the_request_goes_back_at_once(daemon: RunningDaemon, providers: tuple[Provider, Provider]) -> None:
    providers[0].faults.append(Fault(status=400))
    assert daemon.post(CHAT, ask("both"))[0] == 400
    assert not providers[1].requests


def test_a_stream_that_began_is_never_begun_again(daemon: RunningDaemon, providers: tuple[Provider, Provider]) -> None:
    providers[0].faults.append(Fault(error_after=2))
    _, _, raw = daemon.post(CHAT, ask("both", stream=True))
    assert b"error" in raw
    assert not providers[1].requests


@pytest.mark.parametrize("broken", [True, False])
def test_a_stream_that_ends_before_its_first_word_is_no_answer(
    daemon: RunningDaemon, providers: tuple[Provider, Provider], broken: bool
) -> None:
    """Nothing of it went out, so the next one is asked; nothing of it is in the record either."""
    if broken:
        providers[0].faults.append(Fault(after=0))
    else:
        providers[0].framing = "only-pings"
    try:
        status, headers, raw = daemon.post(CHAT, ask("both", stream=True))
    finally:
        providers[0].framing = "plain"
    assert (status, b"second" in raw, b"ping" in raw) == (200, True, False)
    receipt = headers["x-reef-agent-record-id"]
    row = daemon.get(f"/reef/records/{receipt}")
    assert (row["engine"], row["end"], row["error"]) == ("second", "ok", None)
    assert daemon.control("GET", f"/reef/records/{receipt}/response")[1] == raw


def test_the_last_ones_refusal_is_the_answer(daemon: RunningDaemon, providers: tuple[Provider, Provider]) -> None:
    for provider, wait in zip(providers, ("9", "7"), strict=True):
        provider.faults.append(Fault(status=429, headers={"retry-after": wait}))
    status, headers, _ = daemon.post(CHAT, ask("both"))
    assert (status, headers["retry-after"]) == (429, "7")


@pytest.mark.parametrize("model", ["from-lost", "inside-then-out"])
def test_an_engine_that_cannot_answer_at_all_is_passed_over(
    daemon: RunningDaemon, providers: tuple[Provider, Provider], model: str
) -> None:
    status, _, raw = daemon.post(CHAT, ask(model))
    assert (status, b"From the second." in raw) == (200, True)


def test_when_nobody_can_be_reached_the_doctor_is_named(daemon: RunningDaemon) -> None:
    status, _, raw = daemon.post(CHAT, ask("all-lost"))
    assert status == 502
    assert "reef doctor" in json.loads(raw)["error"]["message"]


def test_an_engine_that_is_not_ready_says_when_to_ask_again(
    daemon: RunningDaemon, providers: tuple[Provider, Provider]
) -> None:
    """BUGS B062, B064: Claude Code waits up to a minute, and gives up at once where it is told of more."""
    status, headers, raw = daemon.post(MESSAGES, ask("inside-only"))
    assert (status, json.loads(raw)["error"]["type"]) == (503, "overloaded_error")
    assert 0 < int(headers["retry-after"]) <= 60


def test_a_compressed_body_is_asked_anew_in_plain(daemon: RunningDaemon, providers: tuple[Provider, Provider]) -> None:
    raw = gzip.compress(json.dumps(ask("alone")).encode())
    assert daemon.post(CHAT, raw, content_encoding="gzip")[0] == 200
    assert providers[1].requests[0].header("content-encoding") is None
    assert providers[1].requests[0].body == json.dumps(ask("vendor/large")).encode()


@pytest.mark.parametrize("path", [MESSAGES, f"{MESSAGES}/count_tokens"])
def test_a_provider_is_asked_with_its_own_key_and_name(
    daemon: RunningDaemon, providers: tuple[Provider, Provider], path: str
) -> None:
    assert daemon.post(path, ask("claude-opus"))[0] == 200
    sent = providers[1].requests[0]
    assert (sent.json()["model"], sent.header("x-api-key")) == ("claude-large", "sk-fallback-0123456789")


def test_the_lists_name_what_is_routed_and_where_it_goes_but_no_key(daemon: RunningDaemon) -> None:
    status, _, raw = daemon.post("/v1/models", b"")
    assert status == 405
    told = daemon.open("/v1/models", b"", method="GET")
    raw = told.read()
    assert [one["id"] for one in json.loads(raw)["data"]][-6:] == [
        "both",
        "alone",
        "from-lost",
        "inside-then-out",
        "all-lost",
        "inside-only",
    ]
    routes = {one["name"]: one["engines"] for one in daemon.get("/reef/models")["routes"]}
    assert [(one["engine"], one["model"]) for one in routes["both"]] == [("first", None), ("second", "vendor/large")]
    assert routes["claude-*"][0]["key"] == "env:FALLBACK_KEY"
    assert list(routes)[-2:] == ["claude-*", "*"]
    assert "sk-fallback" not in str(routes)
