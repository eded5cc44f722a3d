"""The reading side of the control plane: what the CLI shows."""

import json
from collections.abc import Iterator

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Turn, running_provider

CHAT = "/v1/chat/completions"
PRICES = {"*": {"input": 2.0, "output": 8.0}}


@pytest.fixture(scope="module")
def daemon(module_home: Home) -> Iterator[RunningDaemon]:
    with running_provider((Turn("Hello from the provider."),)) as provider:
        learns = 'reef: {recipe: "recipes.sao.recipe:SAORecipe", batch_size: 1, max_staleness: 18}\n'
        with running_daemon(module_home, provider.config(prices=PRICES) + learns) as running:
            yield running


def say(daemon: RunningDaemon, *texts: str, **headers: str) -> str:
    """A conversation so far, user and assistant in turn; returns the receipt."""
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": text} for index, text in enumerate(texts)]
    status, told, raw = daemon.post(CHAT, {"model": "m", "messages": messages}, **headers)
    assert status == 200, raw
    return told["x-reef-agent-record-id"]


def test_status_says_what_runs_where(daemon: RunningDaemon) -> None:
    status = daemon.get("/reef/status")
    assert status["url"] == daemon.url
    assert status["home"] == str(daemon.home.root)
    assert status["default_engine"] == "p"
    assert status["recording"] == {"state": "on", "detail": None, "unrecorded": 0, "until_ns": None}
    assert [engine["name"] for engine in status["engines"]] == ["embedded", "p"]
    assert status["context"] is None  # nobody here knows a provider's
    assert any("SAORecipe" in note for note in status["notes"])


def test_status_says_how_an_engine_did_lately(daemon: RunningDaemon) -> None:
    record = daemon.get(f"/reef/records/{say(daemon, 'how fast are you?')}")
    embedded, remote = daemon.get("/reef/status")["engines"]
    assert 0 < remote["cache_hit"] <= 1
    assert record["cached_tokens"] > 0
    assert (remote["tokens_per_second"], remote["memory_mb"], remote["weights"]) == (None, None, None)
    assert (embedded["tokens_per_second"], embedded["cache_hit"]) == (None, None)


def test_status_counts_and_shows_the_last_record(daemon: RunningDaemon) -> None:
    before = daemon.get("/reef/status")["counts"]["records"]
    receipt = say(daemon, "count me")
    status = daemon.get("/reef/status")
    assert status["counts"]["records"] == before + 1
    assert status["last"]["receipt"] == receipt


def test_a_trace_tells_a_persons_words_from_what_the_agent_added(daemon: RunningDaemon) -> None:
    texts = ("<system-reminder>be brief</system-reminder>fix it", "plain words")
    body = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": one} for one in texts]}]}
    receipt = daemon.post("/v1/chat/completions", body)[1]["x-reef-agent-record-id"]
    parts = daemon.get(f"/reef/traces/{receipt}")["records"][-1]["new_messages"][0]["parts"]
    assert [(part["text"], part.get("written")) for part in parts] == [(texts[0], "fix it"), (texts[1], None)]


def test_what_a_turn_cost_is_told_wherever_it_is_shown(daemon: RunningDaemon) -> None:
    receipt = say(daemon, "what does this cost?")
    record = daemon.get(f"/reef/records/{receipt}")
    paid = (record["prompt_tokens"] * 2.0 + record["completion_tokens"] * 8.0) / 1e6
    assert record["cost_usd"] == pytest.approx(paid)
    assert paid > 0
    trace = daemon.get(f"/reef/traces/{receipt}")
    assert trace["session"]["cost_usd"] == trace["records"][0]["record"]["cost_usd"] == record["cost_usd"]
    assert (trace["session"]["status"], trace["session"]["release_id"]) == ("ok", record["release_id"])
    assert daemon.get("/reef/rollups")["items"][0]["cost_usd"] >= record["cost_usd"]
    assert b'reef_cost_usd_total{engine="p"}' in daemon.get("/metrics")
    (line,) = daemon.get(f"/reef/export?form=atif&q=session:{record['session']}").splitlines()
    assert json.loads(line)["final_metrics"]["total_cost_usd"] == record["cost_usd"]


def test_a_trace_shows_each_turn_once(daemon: RunningDaemon) -> None:
    first = say(daemon, "a trace begins")
    answer = daemon.get(f"/reef/traces/{first}")["records"][0]["answer"]
    text = answer["parts"][0]["text"]
    say(daemon, "a trace begins", text, "and goes on")
    trace = daemon.get(f"/reef/traces/{first}")
    said = [[message["parts"][0]["text"] for message in turn["new_messages"]] for turn in trace["records"]]
    assert said == [["a trace begins"], ["and goes on"]]
    assert trace["session"]["turns"] == 2
    assert daemon.get(f"/reef/traces/{trace['session']['id']}") == trace


def test_what_came_along_with_a_first_request_is_no_turn_of_the_session(daemon: RunningDaemon) -> None:
    """aider puts examples before what the person typed; others go on with what was said before Reef was there."""
    said = [("system", "s"), ("user", "an example"), ("assistant", "its answer"), ("user", "what was typed")]
    body = {"model": "m", "messages": [{"role": role, "content": text} for role, text in said]}
    receipt = daemon.post(CHAT, body)[1]["x-reef-agent-record-id"]
    (turn,) = daemon.get(f"/reef/traces/{receipt}")["records"]
    assert [message.get("earlier", False) for message in turn["new_messages"]] == [False, True, True, False]


def test_lists_are_paged_by_cursor_newest_first(daemon: RunningDaemon) -> None:
    receipts = [say(daemon, f"page {number}") for number in range(5)]
    first = daemon.get("/reef/records?limit=3")
    second = daemon.get(f"/reef/records?limit=3&before={first['next']}")
    found = [row["receipt"] for row in first["items"] + second["items"]]
    assert found[:5] == receipts[::-1]
    newer = daemon.get(f"/reef/records?after={first['items'][-1]['seq']}")["items"]
    assert [row["receipt"] for row in newer] == receipts[-2:]


@pytest.mark.parametrize(
    "query", ["limit=x", "limit=-1", "after=1e3", "before=%27%20OR%201=1", "limit=" + "9" * 30, "limit=%C2%B2"]
)
def test_a_bad_page_is_refused(daemon: RunningDaemon, query: str) -> None:
    assert daemon.control("GET", f"/reef/records?{query}")[0] == 400


@pytest.mark.parametrize("path", ["/reef/records/rec_nobody", "/reef/traces/ses_nobody", "/reef/records/x/request"])
def test_what_is_not_there_is_404(daemon: RunningDaemon, path: str) -> None:
    status, data = daemon.control("GET", path)
    assert (status, data["error"]["kind"]) == (404, "not_found")


def test_the_exact_bytes_of_a_request_are_kept(daemon: RunningDaemon) -> None:
    raw = b'{ "model" : "m",\n "messages":[ {"role":"user", "content":"sp\\u00e4t \xc3\xa9"} ], "odd": 1e2 }'
    _, headers, answered = daemon.post(CHAT, raw)
    receipt = headers["x-reef-agent-record-id"]
    assert daemon.control("GET", f"/reef/records/{receipt}/request")[1] == raw
    assert daemon.control("GET", f"/reef/records/{receipt}/response")[1] == answered


def test_scenarios_keep_their_records_apart(daemon: RunningDaemon) -> None:
    mine = say(daemon, "mine", x_reef_scenario="work/api")
    say(daemon, "other")
    assert daemon.get("/reef/last?scenario=work/api")["receipt"] == mine
    assert {row["scenario"] for row in daemon.get("/reef/sessions?scenario=work/api")["items"]} == {"work/api"}


def test_sessions_say_how_many_there_are_and_go_on_in_both_directions(daemon: RunningDaemon) -> None:
    say(daemon, "one more")
    say(daemon, "and another")
    told = daemon.get("/reef/sessions?limit=1")
    assert told["total"] == daemon.get("/reef/status")["counts"]["sessions"] >= 2
    newest = told["items"][0]
    older = daemon.get(f"/reef/sessions?limit=1&before={newest['seq']}")["items"][0]
    assert daemon.get(f"/reef/sessions?after={older['seq']}")["items"] == [newest]
    assert daemon.get("/reef/sessions?scenario=work/api")["total"] is None


def test_a_bad_scenario_name_is_refused_in_the_dialects_shape(daemon: RunningDaemon) -> None:
    status, _, raw = daemon.post(CHAT, {"model": "m", "messages": []}, x_reef_scenario="../etc")
    assert status == 400
    assert "../etc" in json.loads(raw)["error"]["message"]


def test_unknown_paths_answer_at_once(daemon: RunningDaemon) -> None:
    assert daemon.open("/v1/nothing", b"{}").status == 404
    assert daemon.open("/api/v1/models", b"", method="GET", headers=_control(daemon)).status == 404
    assert daemon.open("/", b"", method="HEAD").status == 200


def test_configuration_is_shown_resolved(daemon: RunningDaemon) -> None:
    shown = daemon.get("/reef/config")
    assert shown["reef"]["max_staleness"] == 18
    assert shown["embedded"]["parallel"] == 8


def _control(daemon: RunningDaemon) -> dict[str, str]:
    return {"authorization": f"Bearer {daemon.control_token}"}
