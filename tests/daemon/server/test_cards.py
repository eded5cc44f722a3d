"""A release's card and blame over HTTP: as text, as JSON, as a page that nothing can act in."""

from collections.abc import Iterator

import pytest

from daemon.core.paths import Home
from daemon.store.releases import Releases
from recipes.gate import page
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import running_provider
from tests.fakes.releases import released


@pytest.fixture(scope="module")
def daemon(module_home: Home) -> Iterator[RunningDaemon]:
    with running_provider() as provider, running_daemon(module_home, provider.config()) as running:
        released(Releases.open(module_home), "job_1")
        yield running


def test_the_card_comes_in_three_forms(daemon: RunningDaemon) -> None:
    told = daemon.get("/reef/releases/r1/card")
    assert (told["number"], told["said"], told["acts"]) == (1, [], None)
    assert told["gate"]["pairs"][0]["candidate_answer"] == "Hi."
    text = daemon.get("/reef/releases/r1/card?format=text").decode()
    assert text == told["card"] + "\n"
    assert daemon.get("/reef/releases/r1/card?format=html").startswith(b"<!doctype html>")


@pytest.mark.parametrize("path", ["/reef/releases/r1/card?format=html", "/reef/harness/releases/r1/page"])
def test_a_page_may_run_and_load_nothing(daemon: RunningDaemon, path: str) -> None:
    response = daemon.open(path, b"", method="GET", headers={"authorization": f"Bearer {daemon.control_token}"})
    assert b"what job_1 learned" in response.read()
    assert response.status == 200
    assert response.getheader("content-security-policy") == page.POLICY
    assert response.getheader("x-content-type-options") == "nosniff"
    assert str(response.getheader("content-type")).startswith("text/html")


def test_blame_tells_lines_and_releases(daemon: RunningDaemon) -> None:
    told = daemon.get("/reef/releases/r1/blame?path=rules.md")
    assert [line["text"] for line in told["lines"]] == ["- rule of job_1"]
    assert told["releases"][told["lines"][0]["release"]]["job"] == "job_1"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/reef/releases/r1/card?format=pdf", 400),
        ("/reef/releases/r9/card", 404),
        ("/reef/harness/releases/r9/page", 404),
        ("/reef/releases/r1/blame", 400),
        ("/reef/releases/r1/blame?path=../x", 404),
        ("/reef/releases/r9/blame?path=rules.md", 404),
    ],
)
def test_what_is_not_there_is_said(daemon: RunningDaemon, path: str, status: int) -> None:
    assert daemon.control("GET", path)[0] == status


def test_an_agents_token_reads_no_card(daemon: RunningDaemon) -> None:
    for path in ("/reef/releases/r1/card", "/reef/releases/r1/blame?path=rules.md"):
        response = daemon.open(path, b"", method="GET")
        response.read()
        assert response.status == 401
