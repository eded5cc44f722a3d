"""The model list and token counts, with a provider as the default engine."""

import gzip
import json

import pytest

from tests.fakes.daemon import RunningDaemon, until
from tests.fakes.provider import Fault, Provider

COVERS = ("daemon/server/inference.py", "daemon/server/app.py", "daemon/server/runtime.py")


CONFIG = """
server: {port: 0}
engine: claude
engines:
  claude: {base_url: "$URL/v1", api: anthropic}
  chat: {base_url: "$URL/v1"}
  mute: {base_url: "$URL/nothing/v1", api: anthropic}
  speaks-r: {base_url: "$URL/v1", dialects: responses}
  mute-r: {base_url: "$URL/nothing/v1", dialects: responses}
models: {speaks-r: speaks-r, mute-r: mute-r, local: embedded, "gpt-*": claude, "chat-*": chat, "mute-*": mute}
"""


COUNT = "/v1/responses/input_tokens"


@pytest.mark.parametrize("model", ["chat-1", "mute-r", "gpt-1"])
def test_the_input_of_responses_is_counted_too(daemon: RunningDaemon, model: str) -> None:
    """By a provider of another dialect, by one that speaks it and cannot count."""
    status, _, raw = daemon.post(COUNT, {"model": model, "input": "one two three " * 100, "instructions": "be brief"})
    counted = json.loads(raw)
    assert (status, counted["object"]) == (200, "response.input_tokens")
    assert 250 < counted["input_tokens"] < 400


def test_the_input_of_responses_is_counted_by_the_provider_that_can(daemon: RunningDaemon, provider: Provider) -> None:
    asked = len(provider.requests)
    provider.faults.append(Fault(status=429, headers={"retry-after": "7"}))
    status, headers, _ = daemon.post(COUNT, {"model": "speaks-r", "input": "one"})
    assert (status, headers["retry-after"]) == (429, "7")
    assert [one.path for one in provider.requests[asked:]] == [COUNT]


def test_counting_the_input_of_responses_fails_as_responses_do(daemon: RunningDaemon) -> None:
    for body, status in (({"model": "local", "input": "x"}, 503), (b"{", 400)):
        answered, headers, raw = daemon.post(COUNT, body)
        assert (answered, headers["content-type"]) == (status, "application/json")
        assert {"message", "type", "code", "param"} == set(json.loads(raw)["error"])


def test_compacting_by_the_engine_inside_is_refused_with_what_to_do(daemon: RunningDaemon) -> None:
    status, _, raw = daemon.post("/v1/responses/compact", {"model": "local", "input": "x"})
    error = json.loads(raw)["error"]
    assert (status, error["code"]) == (501, "not_supported")
    assert "route this model to a provider" in error["message"]


def test_counting_is_the_providers_where_the_model_is(daemon: RunningDaemon, provider: Provider) -> None:
    """BUGS B074."""
    body = {"model": "claude-x", "messages": [{"role": "user", "content": "x"}]}
    status, headers, raw = daemon.post("/v1/messages/count_tokens?beta=true", body)
    assert status == 200
    assert json.loads(raw)["input_tokens"] > 0
    assert headers["content-type"] == "application/json"
    assert provider.requests[-1].query == "beta=true"


#: What each agent was seen to ask for, besides conversations (Hermes tries what other servers have first).
ASKED = {
    "Claude Code": [("HEAD", "/"), ("POST", "/v1/messages/count_tokens?beta=true"), ("GET", "/v1/models?limit=1000")],
    "Codex": [("GET", "/v1/models?client_version=0.154.0"), ("POST", "/v1/responses")],
    "Hermes": [("GET", "/v1/models"), ("GET", "/v1/models/default"), ("POST", "/v1/chat/completions")],
    "OpenCode, Pi": [("POST", "/v1/chat/completions"), ("POST", "/v1/responses"), ("POST", "/v1/messages?beta=true")],
}


@pytest.mark.parametrize("agent", ASKED)
def test_every_route_that_an_agent_asks_for_is_there(daemon: RunningDaemon, agent: str) -> None:
    """BUGS B077."""
    said = [{"role": "user", "content": "x"}]
    for method, path in ASKED[agent]:
        body = {"model": "chat-1", "max_tokens": 5, "messages": said, "input": said} if method == "POST" else b""
        response = daemon.open(path, body, method=method)
        assert (response.status, response.read() != b"") == (200, method != "HEAD"), (method, path)


@pytest.mark.parametrize(("query", "models"), [("", None), ("?limit=1000", None), ("?client_version=0.154.0", [])])
def test_every_vendors_client_finds_its_fields_in_the_list(
    daemon: RunningDaemon, query: str, models: list[str] | None
) -> None:
    """BUGS B092: Codex, known by its version, reads another field than OpenAI's and Anthropic's."""
    listed = json.loads(daemon.open(f"/v1/models{query}", b"", method="GET").read())
    ids = [entry["id"] for entry in listed["data"]]
    assert (listed["object"], listed["has_more"], listed["first_id"], listed["last_id"]) == (
        "list", False, ids[0], ids[-1],
    )  # fmt: skip
    assert {"id", "object", "created", "owned_by", "type", "display_name", "created_at"} <= listed["data"][0].keys()
    assert "default" in ids
    assert listed.get("models") == models


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/v1/models"), ("POST", "/api/show"), ("GET", "/props")])
def test_what_other_servers_have_is_refused_at_once(daemon: RunningDaemon, method: str, path: str) -> None:
    response = daemon.open(path, b"{}" if method == "POST" else b"", method=method)
    assert response.status in (401, 404)
    assert json.loads(response.read())["error"]


@pytest.mark.parametrize("model", ["chat-1", "mute-1"])
def test_where_the_provider_cannot_count_the_answer_is_an_estimate(daemon: RunningDaemon, model: str) -> None:
    """BUGS B074, B076: Claude Code sums up its conversation by it: https://github.com/icebear0828/codex-proxy/pull/612"""
    body = {"model": model, "messages": [{"role": "user", "content": "one two three " * 100}]}
    status, _, raw = daemon.post("/v1/messages/count_tokens?beta=true", body)
    assert status == 200
    assert 250 < json.loads(raw)["input_tokens"] < 400


def test_what_its_provider_would_refuse_to_count_is_estimated(daemon: RunningDaemon, provider: Provider) -> None:
    """A thought that a provider of another dialect had, in a conversation that comes back to this one."""
    asked = len(provider.requests)
    thought = {"type": "thinking", "thinking": "one two three " * 100, "signature": "chat:"}
    said = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "y"}]},
    ]
    status, _, raw = daemon.post("/v1/messages/count_tokens", {"model": "claude-x", "messages": said})
    assert (status, len(provider.requests)) == (200, asked)
    assert json.loads(raw)["input_tokens"] > 250


def test_what_only_its_vendor_reads_is_counted_by_its_text(daemon: RunningDaemon) -> None:
    content = [{"type": "document", "source": {"type": "text", "data": "one two three " * 100}}]
    body = {"model": "chat-1", "messages": [{"role": "user", "content": content}]}
    assert json.loads(daemon.post("/v1/messages/count_tokens", body)[2])["input_tokens"] > 250


def test_counting_stops_when_the_client_leaves(daemon: RunningDaemon, provider: Provider) -> None:
    provider.faults.append(Fault(hang=True))
    asked, lost = len(provider.requests), provider.lost
    connection = daemon.connect()
    body = json.dumps({"model": "claude-x", "messages": [{"role": "user", "content": "x"}]})
    connection.request("POST", "/v1/messages/count_tokens", body, daemon.headers())
    until(lambda: len(provider.requests) > asked, "the provider being asked")
    connection.close()
    until(lambda: provider.lost > lost, "the provider being left")


def test_counting_reads_a_compressed_request(daemon: RunningDaemon, provider: Provider) -> None:
    raw = gzip.compress(json.dumps({"model": "claude-x", "messages": []}).encode())
    assert daemon.post("/v1/messages/count_tokens", raw, content_encoding="gzip")[0] == 200
    assert provider.requests[-1].body == raw


def test_counting_without_a_model_on_this_machine_says_what_to_do(daemon: RunningDaemon) -> None:
    said = [{"role": "user", "content": "x"}]
    status, headers, raw = daemon.post("/v1/messages/count_tokens", {"model": "local", "messages": said})
    assert (status, json.loads(raw)["error"]["type"]) == (503, "overloaded_error")
    assert 0 < int(headers["retry-after"]) <= 60
    assert "reef models add default" in json.loads(raw)["error"]["message"]


def test_counting_what_is_no_request_is_400(daemon: RunningDaemon) -> None:
    assert daemon.post("/v1/messages/count_tokens", b"{")[0] == 400


def test_a_request_for_a_model_that_is_not_here_says_what_to_do(daemon: RunningDaemon) -> None:
    body = {"model": "local", "messages": [{"role": "user", "content": "x"}]}
    status, headers, raw = daemon.post("/v1/chat/completions", body)
    assert (status, headers["retry-after"]) == (503, "5")
    assert "reef models add default" in json.loads(raw)["error"]["message"]


def test_exact_names_are_listed_and_patterns_are_not(daemon: RunningDaemon) -> None:
    listed = json.loads(daemon.open("/v1/models", b"", method="GET").read())
    assert [entry["id"] for entry in listed["data"]] == ["default", "speaks-r", "mute-r", "local"]
    assert (listed["first_id"], listed["last_id"]) == ("default", "local")
    assert daemon.open("/v1/models/local", b"", method="GET").status == 200
    missing = daemon.open("/v1/models/nobody", b"", method="GET")
    assert missing.status == 404
    assert "nobody" in json.loads(missing.read())["error"]["message"]
