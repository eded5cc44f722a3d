"""The demo's own client, against a provider that answers, refuses and breaks off."""

from collections.abc import Iterator

import pytest

from daemon.core.errors import EngineError, Unreachable
from reef_cli.streaming import Dialect, Speaker
from tests.fakes.provider import Fault, Provider, Turn, running_provider

DIALECTS: tuple[Dialect, ...] = ("chat", "messages")


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider((Turn("It is a wall of coral."),)) as running:
        yield running


def ask(provider: Provider, dialect: Dialect) -> tuple[str, list[str]]:
    pieces: list[str] = []
    speaker = Speaker(provider.url, "reef-token", "demo")
    answer = speaker.ask(dialect, "what is a reef?", max_tokens=10, on_text=pieces.append)
    return answer.text, pieces


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_comes_in_pieces(provider: Provider, dialect: Dialect) -> None:
    text, pieces = ask(provider, dialect)
    assert text == "It is a wall of coral." == "".join(pieces)
    assert len(pieces) > 1


def test_each_dialect_presents_the_token_as_its_clients_do(provider: Provider) -> None:
    for dialect in DIALECTS:
        ask(provider, dialect)
    chat, messages = provider.requests[-2:]
    assert chat.header("authorization") == "Bearer reef-token"
    assert messages.header("x-api-key") == "reef-token"
    assert chat.header("x-reef-scenario") == "demo"
    assert chat.header("x-reef-session-id") != messages.header("x-reef-session-id")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refusal_is_told_in_its_own_words(provider: Provider, dialect: Dialect) -> None:
    provider.faults.append(Fault(status=429))
    with pytest.raises(EngineError) as caught:
        ask(provider, dialect)
    assert caught.value.message
    assert "HTTP" not in caught.value.message


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_inside_the_stream_is_an_error(provider: Provider, dialect: Dialect) -> None:
    provider.faults.append(Fault(error_after=2))
    with pytest.raises(EngineError):
        ask(provider, dialect)


def test_a_broken_connection_is_unreachable(provider: Provider) -> None:
    provider.faults.append(Fault(drop=True))
    with pytest.raises(Unreachable, match="broke off"):
        ask(provider, "chat")


def test_nobody_there_is_unreachable(free_port: int) -> None:
    with pytest.raises(Unreachable):
        Speaker(f"http://127.0.0.1:{free_port}", "t", "demo").ask("chat", "x", max_tokens=1, on_text=print)
