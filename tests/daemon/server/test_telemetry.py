"""Spans reach a real collector, say nothing that was not asked for, and cost no request anything."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from daemon.core.config import TelemetryConfig
from daemon.core.paths import Home
from daemon.core.redact import Redactor
from daemon.server.privacy import Privacy
from daemon.server.recorder import Recorder
from daemon.server.telemetry import Telemetry
from daemon.store.db import Store
from tests.fakes.collector import Collector, running_collector
from tests.fakes.daemon import running_daemon
from tests.fakes.exchanges import exchange, transcript, user
from tests.fakes.provider import Turn, running_provider

SAID = "the words of a person"
MADE = transcript([user(SAID)], "the words of a model")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "reef.db", durability="normal")


@asynccontextmanager
async def exporting(store: Store, url: str, *, content: bool = False) -> AsyncIterator[tuple[Recorder, Telemetry]]:
    telemetry = Telemetry(TelemetryConfig(url, content), store, Redactor(b"k"), {"p": "openai"})
    task = asyncio.create_task(telemetry.run())
    try:
        yield Recorder(store, Privacy(Home(Path("/nowhere")), ()), [telemetry.ended]), telemetry
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await telemetry.close()
        store.close()


async def until_arrived(collector: Collector, count: int) -> None:
    async with asyncio.timeout(20):
        while len(collector.spans()) < count:
            await asyncio.sleep(0.01)


async def test_a_recorded_exchange_arrives_without_what_was_said(store: Store) -> None:
    one = exchange(MADE, engine="p", model_asked="m")
    with running_collector() as collector:
        async with exporting(store, collector.url) as (recorder, telemetry):
            assert await recorder.record(one, lambda: MADE)
            await until_arrived(collector, 1)
            assert telemetry.note() is None
        assert collector.paths == ["/v1/traces"]
        assert collector.spans()[0]["attributes"]["reef.receipt"] == one.receipt
        assert b"the words" not in b"".join(collector.bodies)


async def test_what_was_said_comes_along_where_it_is_asked_for(store: Store) -> None:
    with running_collector() as collector:
        async with exporting(store, f"{collector.url}/v1/traces", content=True) as (recorder, _):
            assert await recorder.record(exchange(MADE), lambda: MADE)
        told = collector.spans()[0]["attributes"]
        assert SAID in told["gen_ai.input.messages"]
        assert "words of a model" in told["gen_ai.output.messages"]


async def test_a_key_sent_as_a_models_name_is_taken_out(store: Store) -> None:
    key = "sk-ant-api03-" + "aB3" * 10
    with running_collector() as collector:
        async with exporting(store, collector.url) as (recorder, _):
            assert await recorder.record(exchange(MADE, model_asked=key, error=f"bad {key}"), lambda: MADE)
        assert len(collector.spans()) == 1
        assert key.encode() not in b"".join(collector.bodies)


async def test_nobody_waits_for_a_collector_that_is_gone(store: Store, free_port: int) -> None:
    async with exporting(store, f"http://127.0.0.1:{free_port}") as (recorder, telemetry):
        started = time.monotonic()
        for _ in range(20):
            assert await recorder.record(exchange(MADE), lambda: MADE)
        assert time.monotonic() - started < 5
        async with asyncio.timeout(20):
            while telemetry.note() is None:
                await asyncio.sleep(0.01)
        with running_collector(free_port) as collector:  # it comes back, and gets what waited
            await until_arrived(collector, 20)
            assert telemetry.note() is None


async def test_a_busy_collector_is_asked_again_and_a_refusal_is_final(store: Store) -> None:
    with running_collector() as collector:
        collector.statuses.extend([503, 400])
        async with exporting(store, collector.url) as (recorder, telemetry):
            assert await recorder.record(exchange(MADE), lambda: MADE)
            async with asyncio.timeout(20):
                while len(collector.paths) < 2:
                    await asyncio.sleep(0.01)
                while "400" not in (telemetry.note() or ""):
                    await asyncio.sleep(0.01)
        assert (telemetry.note() or "").endswith("1 spans dropped")
        assert collector.spans() == []


async def test_more_than_fits_loses_the_oldest_and_says_how_many(store: Store) -> None:
    telemetry = Telemetry(TelemetryConfig("http://127.0.0.1:9"), store, Redactor(b"k"), {})
    one = exchange(MADE)
    appended = store.append(one, lambda: MADE).result(20)
    for _ in range(2050):
        telemetry.ended(one, appended)
    await telemetry.close()  # nobody listens on port 9
    assert "2 spans dropped" in (telemetry.note() or "")
    store.close()


async def test_what_was_not_recorded_has_no_span(store: Store) -> None:
    with running_collector() as collector:
        async with exporting(store, collector.url) as (_, telemetry):
            telemetry.ended(exchange(MADE), None)
        assert collector.paths == []


def test_a_daemon_goes_on_with_the_callers_trace(reef_home: Home) -> None:
    with running_provider((Turn("Traced."),)) as provider, running_collector() as collector:
        config = provider.config() + f'telemetry: {{endpoint: "{collector.url}"}}\n'
        with running_daemon(reef_home, config) as daemon:
            asked = {"model": "m", "messages": [{"role": "user", "content": SAID}]}
            parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
            assert daemon.post("/v1/chat/completions", asked, traceparent=parent)[0] == 200
        (span,) = collector.spans()  # what waits is sent when the daemon stops
        assert (span["traceId"], span["parentSpanId"]) == (parent[3:35], parent[36:52])
        assert span["attributes"]["gen_ai.provider.name"] == "openai"
        assert provider.requests[0].header("traceparent") == parent
