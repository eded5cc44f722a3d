"""The demo's own client, against a provider that answers, refuses and breaks off."""

from collections.abc import Iterator

import pytest

from daemon.core.errors import EngineError, Unreachable
from reef_cli.demo.speaker import Speaker
from tests.fakes.provider import Fault, Provider, Turn, running_provider


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider((Turn("It is a wall of coral."),)) as running:
        yield running


def ask(provider: Provider) -> str:
    return Speaker(provider.url, "reef-token", "demo").ask("what is a reef?", max_tokens=10).text


def test_an_answer_is_put_together(provider: Provider) -> None:
    assert ask(provider) == "It is a wall of coral."


def test_each_question_is_a_conversation_of_the_scenario_s(provider: Provider) -> None:
    ask(provider)
    ask(provider)
    one, other = provider.requests[-2:]
    assert one.header("authorization") == "Bearer reef-token"
    assert one.header("x-reef-scenario") == "demo"
    assert one.header("x-reef-session-id") != other.header("x-reef-session-id")


def test_a_refusal_is_told_in_its_own_words(provider: Provider) -> None:
    provider.faults.append(Fault(status=429))
    with pytest.raises(EngineError) as caught:
        ask(provider)
    assert caught.value.message
    assert "HTTP" not in caught.value.message


def test_an_error_inside_the_stream_is_an_error(provider: Provider) -> None:
    provider.faults.append(Fault(error_after=2))
    with pytest.raises(EngineError):
        ask(provider)


def test_a_broken_connection_is_unreachable(provider: Provider) -> None:
    provider.faults.append(Fault(drop=True))
    with pytest.raises(Unreachable, match="broke off"):
        ask(provider)


def test_nobody_there_is_unreachable(free_port: int) -> None:
    with pytest.raises(Unreachable):
        Speaker(f"http://127.0.0.1:{free_port}", "t", "demo").ask("x", max_tokens=1)
