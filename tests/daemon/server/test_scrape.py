"""``/metrics`` of a daemon that works: every family, for whoever may see it."""

import pytest

from tests.fakes.daemon import RunningDaemon
from tests.fakes.prometheus import Metric, parse
from tests.fakes.provider import Fault, Provider, Turn

CHAT = "/v1/chat/completions"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "count me"}]}


TURNS = (Turn("Counted."),)


def scrape(daemon: RunningDaemon) -> dict[str, Metric]:
    status, raw = daemon.control("GET", "/metrics")
    assert status == 200
    return parse(raw.decode())


def test_what_happens_is_counted(daemon: RunningDaemon, provider: Provider) -> None:
    assert daemon.post(CHAT, ASKED)[0] == 200
    provider.faults.append(Fault(status=429))
    assert daemon.post(CHAT, ASKED)[0] == 429
    found = scrape(daemon)
    requests = found["reef_requests_total"]
    assert requests.value("reef_requests_total", dialect="chat", engine="p", end="ok", kind="main") == 1
    assert sum(requests.samples.values()) == 2
    assert found["reef_stored"].value("reef_stored", what="records") == 2
    assert found["reef_tokens_total"].value("reef_tokens_total", engine="p", type="completion") > 0
    assert found["reef_engine_state"].value("reef_engine_state", engine="p", state="ready") == 1
    assert found["reef_engine_cache_hit_ratio"].value("reef_engine_cache_hit_ratio", engine="p") > 0
    assert found["reef_jobs"].value("reef_jobs", state="running") == 0
    assert found["reef_store_bytes"].value("reef_store_bytes") > 0
    assert found["process_cpu_seconds_total"].value("process_cpu_seconds_total") > 0


@pytest.mark.parametrize(("token", "status"), [("agent", 401), ("control", 200), (None, 401)])
def test_only_the_control_token_opens_it_over_tcp(daemon: RunningDaemon, token: str | None, status: int) -> None:
    tokens = {"agent": daemon.agent_token, "control": daemon.control_token}
    bearer = f"Bearer {tokens[token]}" if token else ""
    response = daemon.open("/metrics", b"", method="GET", headers={"authorization": bearer})
    assert response.status == status
    if status == 200:
        assert response.getheader("content-type") == "text/plain; version=0.0.4; charset=utf-8"
        parse(response.read().decode())
