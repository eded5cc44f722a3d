"""Each vendor's client, streamed and not, whatever can be asked and go wrong, whoever answers.

Engines: a provider that speaks the client's dialect, one that speaks only another, and the one inside.
"""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.e2e.conftest import add_model
from tests.e2e.vendors import VENDORS, vendor
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.provider import Call, Fault, Provider, Turn, running_provider

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PLACES = ("same", "other", "inside")
ANSWER = Turn("A short answer.", thinking="Let me think.")
CALLS = Turn("", (Call("bash", {"command": "ls"}), Call("bash", {"command": "pwd"})))
OTHER = {"chat": "messages", "messages": "responses", "responses": "chat"}
MATRIX = [
    pytest.param(client, place, stream, id=f"{client}-{place}-{'streamed' if stream else 'whole'}")
    for client in VENDORS
    for place in PLACES
    for stream in (True, False)
]
EVERY = pytest.mark.parametrize(("client", "place", "stream"), MATRIX)
REMOTE = pytest.mark.parametrize(("client", "place", "stream"), [one for one in MATRIX if "inside" not in one.values])


@pytest.fixture(scope="module")
def one_provider() -> Iterator[Provider]:
    with running_provider((ANSWER,)) as running:
        yield running


@pytest.fixture
def provider(one_provider: Provider) -> Iterator[Provider]:
    one_provider.turns = (ANSWER,)
    one_provider.requests.clear()
    yield one_provider
    one_provider.faults.clear()


def _config(url: str, engine: str, keepalive: float) -> str:
    engines = "\n".join(
        f"  {name}: {{base_url: '{url}/v1', dialects: {name}, api: {'anthropic' if name == 'messages' else 'openai'}}}"
        for name in VENDORS
    )
    return f"server: {{port: 0, keepalive_seconds: {keepalive}}}\nengine: {engine}\nengines:\n{engines}\n"


@pytest.fixture(scope="module")
def daemons(one_provider: Provider, model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A daemon for each engine that answers by default, started when it is first asked for."""
    running: dict[str, tuple[Any, RunningDaemon]] = {}

    def of(engine: str, keepalive: float = 12.0) -> RunningDaemon:
        name = f"{engine}-{keepalive:g}"
        if name not in running:
            home = Home(Path("/tmp") / f"reef-matrix-{name}-{tmp_path_factory.getbasetemp().name}")
            context = running_daemon(home, _config(one_provider.url, engine, keepalive))
            running[name] = context, context.__enter__()
            if engine == "embedded":
                add_model(running[name][1], model_path)
        return running[name][1]

    yield of
    for context, daemon in running.values():
        context.__exit__(None, None, None)
        shutil.rmtree(daemon.home.root)


def engine_of(client: str, place: str) -> str:
    return {"same": client, "other": OTHER[client], "inside": "embedded"}[place]


@pytest.fixture
def daemon(daemons: Any, client: str, place: str) -> RunningDaemon:
    running: RunningDaemon = daemons(engine_of(client, place))
    return running


def newest(daemon: RunningDaemon) -> dict[str, Any]:
    row: dict[str, Any] = daemon.get("/reef/records?limit=1")["items"][0]
    return row


@EVERY
async def test_text(daemon: RunningDaemon, provider: Provider, client: str, place: str, stream: bool) -> None:
    async with vendor(client, daemon.url, daemon.agent_token) as asking:
        said = await asking.ask("Say something short.", stream=stream)
    assert said.text if place == "inside" else said.text == "A short answer."
    assert said.tokens > 0
    assert (newest(daemon)["end"], newest(daemon)["stream"]) == ("ok", stream)


@EVERY
async def test_tools(daemon: RunningDaemon, provider: Provider, client: str, place: str, stream: bool) -> None:
    provider.turns = (CALLS,)
    async with vendor(client, daemon.url, daemon.agent_token) as asking:
        said = await asking.ask("List the files with the tool bash.", stream=stream, tools=True)
    if place == "inside":
        assert [name for name, _ in said.calls] == ["bash"] * len(said.calls)
        assert said.calls
        assert all(isinstance(arguments.get("command"), str) for _, arguments in said.calls)
    else:
        assert said.calls == [("bash", {"command": "ls"}), ("bash", {"command": "pwd"})]


@EVERY
async def test_thinking(daemon: RunningDaemon, provider: Provider, client: str, place: str, stream: bool) -> None:
    """The model inside does not think: being asked to is no error there."""
    async with vendor(client, daemon.url, daemon.agent_token) as asking:
        said = await asking.ask("Think, then say something.", stream=stream, thinking=True)
    assert said.text
    assert said.thinking == ("" if place == "inside" else "Let me think.")


@REMOTE
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 529])
async def test_errors_keep_their_status_and_what_they_say_of_retrying(
    daemon: RunningDaemon, provider: Provider, client: str, place: str, stream: bool, status: int
) -> None:
    provider.faults.append(Fault(status=status, headers={"retry-after": "7"}))
    async with vendor(client, daemon.url, daemon.agent_token) as asking:
        with pytest.raises(asking.error) as caught:
            await asking.ask("hi", stream=stream)
    failed: Any = caught.value
    assert (failed.status_code, failed.response.headers["retry-after"]) == (status, "7")
    assert f"scripted {status}" in str(failed)
    assert newest(daemon)["end"] == "error"


@REMOTE
async def test_what_the_client_retries_is_answered(
    daemon: RunningDaemon, provider: Provider, client: str, place: str, stream: bool
) -> None:
    provider.faults.extend([Fault(status=429, headers={"retry-after-ms": "1"}), Fault(drop=True), Fault(drop=True)])
    async with vendor(client, daemon.url, daemon.agent_token, max_retries=3) as asking:
        assert (await asking.ask("hi", stream=stream)).text == "A short answer."


@pytest.mark.parametrize(("client", "place", "stream"), [one for one in MATRIX if "inside" in one.values])
async def test_a_prompt_that_is_too_long_inside(
    daemon: RunningDaemon, provider: Provider, client: str, place: str, stream: bool
) -> None:
    async with vendor(client, daemon.url, daemon.agent_token) as asking:
        with pytest.raises(asking.error) as caught:
            await asking.ask("word " * 20_000, stream=stream)
    failed: Any = caught.value
    assert failed.status_code == 400
    assert "context length" in str(failed) or "prompt is too long" in str(failed)


async def _left(daemon: RunningDaemon, provider: Provider, place: str, asking: asyncio.Task[Any]) -> bool:
    """Cancel once the engine is at work for it: its record says so, unless the answer came to its own end just then."""

    def at_work() -> Any:
        busy = daemon.get("/reef/status")["engines"][0]["running"] if place == "inside" else provider.requests
        return busy and daemon.get("/reef/live")["items"]

    (row,) = await asyncio.to_thread(until, at_work, "the engine is at work")
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking

    def end() -> str | None:
        records = daemon.get("/reef/records?limit=1")["items"]
        return records[0]["end"] if records and records[0]["receipt"] == row["receipt"] else None

    said = await asyncio.to_thread(until, end, "the record of a client that left")
    assert said in ("cancelled", "ok")
    return bool(said == "cancelled")


@EVERY
async def test_cancel(daemon: RunningDaemon, provider: Provider, client: str, place: str, stream: bool) -> None:
    provider.faults.append(Fault(hang=True))
    lost = provider.lost
    async with vendor(client, daemon.url, daemon.agent_token) as asking:
        if place == "inside":  # warm: a load is not a request that runs
            await asking.ask("hi", stream=False)
        long = "Count to a million, one number a line."
        for _ in range(10 if place == "inside" else 1):  # a provider that hangs has no end
            if await _left(daemon, provider, place, asyncio.create_task(asking.ask(long, stream=stream))):
                break
        else:
            pytest.fail("no call that was left is recorded as cancelled")
    if place == "inside":
        await asyncio.to_thread(until, lambda: not daemon.get("/reef/status")["engines"][0]["running"], "it stopped")
    else:
        await asyncio.to_thread(until, lambda: provider.lost > lost, "the provider is left")


@REMOTE
async def test_timeout(daemon: RunningDaemon, provider: Provider, client: str, place: str, stream: bool) -> None:
    provider.faults.append(Fault(hang=True))
    async with vendor(client, daemon.url, daemon.agent_token, timeout=0.5) as asking:
        with pytest.raises(asking.late):
            await asking.ask("hi", stream=stream)
    row = await asyncio.to_thread(
        until, lambda: (one := newest(daemon))["end"] == "cancelled" and one, "its record", 10
    )
    assert row["error"] == "the client left"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("client", list(VENDORS))
async def test_keep_alives_are_nothing_to_a_client(daemons: Any, provider: Provider, client: str, place: str) -> None:
    """Before the first byte and between two: the provider is slow, the engine inside reads a long prompt."""
    daemon: RunningDaemon = daemons(engine_of(client, place), 0.05)
    provider.faults.append(Fault(wait=0.3))
    provider.pace = 0.12
    try:
        async with vendor(client, daemon.url, daemon.agent_token) as asking:
            said = await asking.ask(
                "word " * 300 + "\nSay hello." if place == "inside" else "hi", stream=True, thinking=True
            )
    finally:
        provider.pace = 0.0
    assert said.tokens > 0
    if place != "inside":
        assert (said.text, said.thinking) == ("A short answer.", "Let me think.")
    assert newest(daemon)["end"] == "ok"


def test_the_engine_inside_says_that_it_still_reads(daemons: Any) -> None:
    daemon: RunningDaemon = daemons("embedded", 0.05)
    said = [{"role": "user", "content": "fish " * 300 + "\nSay hello."}]
    _, _, raw = daemon.post("/v1/messages", {"model": "m", "max_tokens": 4, "stream": True, "messages": said})
    assert b"event: ping" in raw
    assert raw.count(b"event: message_start") == 1
