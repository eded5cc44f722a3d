"""The scripted person asks as an agent does, and goes on asking while releases change."""

from collections.abc import Iterator

import pytest

from daemon.core.paths import Home
from reef_cli.demo import person
from reef_cli.demo.person import Traffic
from reef_cli.demo.speaker import Speaker
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.provider import Fault, Provider, Turn, running_provider


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        running.reply = lambda asked: Turn(f"You asked: {asked['messages'][-1]['content']}")
        yield running


@pytest.fixture(scope="module")
def daemon(module_home: Home, provider: Provider) -> Iterator[RunningDaemon]:
    with running_daemon(module_home, provider.config()) as running:
        yield running


@pytest.fixture
def speaker(daemon: RunningDaemon) -> Speaker:
    return Speaker(daemon.url, daemon.agent_token, "demo")


def test_answers_come_in_the_order_of_the_questions(speaker: Speaker, daemon: RunningDaemon) -> None:
    questions = person.lines("questions.txt")
    answers = person.ask(speaker, questions)
    assert [answer.text for answer in answers] == [f"You asked: {question}" for question in questions]
    assert {answer.release for answer in answers} == {"base"}
    assert daemon.get("/reef/sessions?scenario=demo&limit=500")["items"][0]["turns"] == 1


def test_nothing_held_out_is_ever_asked_before() -> None:
    asked, held_out = person.lines("questions.txt"), person.lines("held_out.txt")
    facts = [str(task["prompt"]) for task in person.tasks("regression.yaml")]
    assert (len(set(asked)), len(set(held_out)), len(set(facts))) == (36, 40, 14)
    assert not set(asked) & set(held_out)
    assert not set(facts) & {*asked, *held_out}


def test_traffic_counts_what_answered_and_what_failed(speaker: Speaker, provider: Provider) -> None:
    with Traffic(speaker, ["one?", "two?"]) as traffic:
        assert traffic.wait_for("base", 60)
        assert not traffic.wait_for("r1-00000000", 0.2)
        provider.faults.append(Fault(status=500))
        until(lambda: traffic.failed, "a failure that is counted")
    assert traffic.answered["base"] >= 1
