"""`reef releases card` and `blame`: why a release was accepted, and whose words put each line there."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from daemon.core.errors import ExitCode
from daemon.core.releases import Release
from daemon.store.releases import Releases
from tests.fakes.releases import ACCEPTED, candidate, released
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


@pytest.fixture(scope="module")
def store(served: Served) -> Releases:
    return Releases.open(served.home)


@pytest.fixture(scope="module")
def taught(served: Served, store: Releases) -> Release:
    """A release that came from a report of a person's."""
    receipt = served.ask("too long?")
    body = {"score": 0, "feedback": "Answer in one \x1b[31msentence.", "references": [receipt]}
    told = served.daemon.control("POST", "/reef/report", body)[1]
    first = released(store, "job_1", harness={"rules.md": "Use uv.\n"})
    harness = {"rules.md": "Use uv.\nAnswer in one sentence.\n"}
    made = replace(candidate("job_2", first.id, harness=harness), reports=(told["agent_record_id"],))
    return store.publish(store.propose(made, ACCEPTED), first.id)


def test_blame_names_the_report_that_put_a_line_there(cli: Reef, taught: Release) -> None:
    lines = cli("releases", "blame", "rules.md").out.splitlines()
    assert lines[:2] == ["r1      Use uv.", "r2      Answer in one sentence."]
    at = next(number for number, line in enumerate(lines) if line.startswith(taught.id))
    assert "recipe playbook, job job_2" in lines[at]
    assert lines[at + 1] == "  what job_2 learned"
    assert lines[at + 2].startswith(f"  report 0 {taught.reports[0]}: Answer in one \\x1b[31msentence.")
    told = cli("releases", "blame", "rules.md", "r1", "--json").json()
    assert [line["text"] for line in told["lines"]] == ["Use uv."]


def test_what_has_no_lines_is_said(cli: Reef, taught: Release) -> None:
    missing = cli("releases", "blame", "prompts/x.md", "--json")
    assert (missing.code, missing.error()["hint"]) == (ExitCode.NOT_FOUND, "it has rules.md")


def test_the_card_as_text_json_and_a_page(cli: Reef, taught: Release) -> None:
    shown = cli("releases", "card").out
    assert shown.startswith("verdict   accepted: 9 better, 1 worse of 12\n")
    assert f"said      report 0 {taught.reports[0]}: Answer in one" in shown
    told = cli("releases", "card", "r2", "--json").json()
    assert (told["id"], told["gate"]["pairs"][0]["candidate_answer"]) == (taught.id, "Hi.")
    page = cli("releases", "card", "--html").out
    assert page.startswith("<!doctype html>\n")
    assert "Answer in one ⟨U+001B⟩[31msentence." in page
    HTMLParser().feed(page)
