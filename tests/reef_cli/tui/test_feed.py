"""The dashboard beside a real daemon that is killed, replaced, frozen, paused, or loses its socket."""

import signal
import time
from collections.abc import Iterator

import pytest

from daemon.core.client import Client
from daemon.core.paths import Home
from tests.fakes.daemon import start
from tests.fakes.dashboard import FakeDaemon
from tests.fakes.provider import Provider, Turn, running_provider
from tests.reef_cli.raw_server import Open, answering
from tests.reef_cli.tui.seen import Seen, dashboard

COVERS = ("reef_cli/tui/desk.py",)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        running.turns = (Turn("an answer"),)
        yield running


class House:
    """A home whose daemon comes and goes."""

    def __init__(self, home: Home, provider: Provider) -> None:
        self.home = home
        self.provider = provider
        self.daemon = start(home, provider.config())

    def restart(self) -> None:
        self.daemon = start(self.home, self.provider.config())

    def ask(self, text: str) -> None:
        status, _, raw = self.daemon.post("/v1/chat/completions", {"messages": [{"role": "user", "content": text}]})
        assert status == 200, raw

    def signal(self, number: signal.Signals) -> None:
        self.daemon.process.send_signal(number)


@pytest.fixture
def house(reef_home: Home, provider: Provider) -> Iterator[House]:
    built = House(reef_home, provider)
    try:
        yield built
    finally:
        built.signal(signal.SIGCONT)
        built.daemon.stop()


def banner(seen: Seen) -> str:
    return seen.screen.splitlines()[1]


async def test_killed_and_started_again_on_another_port(house: House) -> None:
    house.ask("first")
    async with dashboard(house.home) as seen:
        await seen.until(lambda: "first" in seen.marked)
        house.daemon.kill()
        await seen.shows("! the daemon is not running; s starts it, or: reef start")
        assert "first" in seen.marked
        port = house.daemon.port
        house.daemon.stop()
        house.restart()
        assert house.daemon.port != port
        await seen.until(lambda: not banner(seen).startswith("!"))
        house.ask("second")
        await seen.until(lambda: "second" in seen.marked)


async def test_frozen_and_thawed(house: House) -> None:
    """It takes connections and answers none: noticed by its silence, and by a key that got no answer."""
    house.ask("first")

    def hasty(timeout: float) -> Client:
        return Client(house.home.socket, timeout=1.0)

    async with dashboard(house.home, connect=hasty) as seen:
        await seen.until(lambda: "first" in seen.marked)
        house.signal(signal.SIGSTOP)
        await seen.press("enter")
        await seen.shows("! the daemon has not answered for 1 s; trying again; reef logs")
        await seen.press("escape")
        assert "first" in seen.marked
        house.signal(signal.SIGCONT)
        await seen.until(lambda: not banner(seen).startswith("!"))
        house.ask("second")
        await seen.until(lambda: "second" in seen.marked)


async def test_frozen_from_the_start(house: House) -> None:
    house.signal(signal.SIGSTOP)
    async with dashboard(house.home) as seen:
        assert "connecting to the daemon" in seen.screen
        await seen.press("plus")
        await seen.shows("! the daemon has not answered for 5 s", "shown as soon as the daemon answers")
        house.signal(signal.SIGCONT)
        await seen.shows("nothing yet: ")


async def test_a_stream_that_falls_silent(house: House) -> None:
    async with dashboard(house.home, connect=lambda timeout: Client(house.home.socket, timeout=1, silence=0.5)) as seen:
        await seen.shows("! the daemon has not answered for 0.5 s")
        await seen.until(lambda: not banner(seen).startswith("!"))


async def test_its_socket_is_removed(house: House) -> None:
    house.ask("first")
    async with dashboard(house.home) as seen:
        await seen.until(lambda: "first" in seen.marked)
        house.home.socket.unlink()
        house.ask("second")  # the stream that is open tells; the list cannot be read
        await seen.shows("! the daemon is not running")
        assert "first" in seen.marked
        await seen.press("s")
        await seen.shows("its socket is gone", f"kill {house.daemon.process.pid}")
        house.daemon.stop()
        house.restart()
        await seen.until(lambda: "second" in seen.marked)


async def test_another_version_answers(reef_home: Home, fake: FakeDaemon) -> None:
    """As after an upgrade, in a dashboard that was open meanwhile."""
    async with dashboard(reef_home) as seen:
        await seen.shows("nothing yet")
        fake.stop()
        await seen.shows("! the daemon")
        fake.status["version"] = "99.0"
        fake.start()
        await seen.shows("the daemon is now Reef 99.0, this dashboard")


async def test_recording_that_is_paused_is_told_from_nothing_yet(house: House) -> None:
    client = Client(house.home.socket)
    client.post("/reef/pause", {"seconds": 3600})
    async with dashboard(house.home, now=time.time_ns) as seen:
        await seen.until(lambda: seen.screen.count("recording is paused until") == 2)  # above, and in the empty list
        client.post("/reef/resume", {})
        await seen.shows("nothing yet: ")
        assert "paused" not in seen.screen
        client.post("/reef/pause", {"seconds": 3})
        await seen.shows("recording is paused until")
        await seen.shows("nothing yet: ")  # it ended by itself; no event says so


async def test_a_daemon_that_breaks_off_what_is_asked_is_not_asked_all_the_time(reef_home: Home) -> None:
    """Its events come, so that nothing looks lost: each look would at once cause the next one."""
    hello = Open(b"HTTP/1.1 200 OK\r\n\r\nevent: engine\ndata: []\n\n")
    asked: list[float] = []

    def answer(request: bytes) -> bytes:
        if b"/reef/events" in request:
            return hello
        asked.append(time.monotonic())
        return b""

    with answering(reef_home.socket, answer):
        async with dashboard(reef_home) as seen:
            await seen.until(lambda: len(asked) > 20)
    assert asked[20] - asked[0] > 1.0
