"""The article's client snippets, as printed there: only base URL, token, model and messages are filled in."""

from collections.abc import Iterator

import httpx
import pytest

from tests.fakes.daemon import RunningDaemon

pytestmark = pytest.mark.engine


@pytest.fixture
def client(embedded: RunningDaemon) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {embedded.agent_token}"}
    with httpx.Client(base_url=embedded.url, headers=headers, timeout=60) as made:
        yield made


def test_the_two_snippets(client: httpx.Client, embedded: RunningDaemon) -> None:
    # Standard inference call through Reef, Open-AI format
    response = client.post(
        "/v1/chat/completions",
        json={"model": "default", "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 20},
    )
    # Reference to the inference record stored by Reef
    receipt = response.headers["x-reef-agent-record-id"]
    # Attach feedback to the corresponding inference record
    reported = client.post(
        "/reef/report",
        json={"feedback": "wrong answer", "references": [receipt]},
    )
    assert response.json()["choices"][0]["message"]["content"]
    assert reported.status_code == 200
    stored = embedded.get(f"/reef/records/{receipt}")
    assert (stored["end"], stored["reports"][0]["feedback"]) == ("ok", "wrong answer")


def test_the_two_snippets_streamed(client: httpx.Client, embedded: RunningDaemon) -> None:
    body = {"model": "default", "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 20}
    with client.stream("POST", "/v1/chat/completions", json=body | {"stream": True}) as response:
        # The receipt is there before the answer is.
        receipt = response.headers["x-reef-agent-record-id"]
        lines = [line for line in response.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    reported = client.post("/reef/report", json={"feedback": "wrong answer", "references": [receipt]})
    assert reported.status_code == 200
    assert embedded.get(f"/reef/records/{receipt}")["reports"][0]["feedback"] == "wrong answer"
