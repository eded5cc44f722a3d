"""Silence is noticed, again and again, and only silence."""

import asyncio

from daemon.server.pulse import Pulse


async def test_each_silence_beats_and_a_stopped_pulse_does_not() -> None:
    beats = asyncio.Queue[int]()

    async def beat() -> None:
        beats.put_nowait(1)

    pulse = Pulse(0.01, beat)
    for _ in range(3):
        async with asyncio.timeout(60):
            await beats.get()
    pulse.stop()
    assert beats.empty()
    await asyncio.sleep(0.05)
    assert beats.empty()


async def test_who_speaks_all_the_time_is_not_silent() -> None:
    beats: list[int] = []

    async def beat() -> None:
        beats.append(1)

    pulse = Pulse(5.0, beat)
    for _ in range(20):
        pulse.felt()
        await asyncio.sleep(0.001)
    pulse.stop()
    assert beats == []
