"""The dashboard as a person has it: the real program in a terminal of 80 by 24, the real daemon behind it.

``python -m bench.dashboard [--rounds N] [--check] [--write README.md]``: start to first paint beside an empty Textual
app; the list over a thousand and over a million records; key to paint while ten agents stream; CPU when nothing
happens; memory over as many records as ten agents make in an hour, twice. Linux only; needs a C compiler for the
provider.
"""

import argparse
import contextlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from bench import many
from bench.figures import Figure, tell, write
from bench.terminal import Program, Screen
from bench.traffic import compiled, upstream
from daemon.core.client import Client
from daemon.core.paths import Home
from reef_cli.lifecycle import ensure_daemon, stop_daemon

_ROOT: Final = Path(__file__).parents[1]
_REEF: Final = (sys.executable, "-m", "reef_cli.main", "tui", "--no-mouse")
_EMPTY: Final = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("ready")
Empty().run()
"""
_RECORDS: Final = (1_000, 100_000, 1_000_000)
#: Ten agents, each with an answer every five seconds.
_HOUR: Final = 7_200
_IDLE_SECONDS: Final = 20.0
#: What is pressed while agents stream, and how many rows above the list's end the selection is then.
_KEYS: Final = (("k", 1), ("k", 2), ("j", 1), ("G", 0))
_KEY_ROUNDS: Final = 60


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.dashboard", description="The dashboard, measured.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="exit 1 where a target is missed")
    parser.add_argument("--write", type=Path, help="a file with the table's markers")
    options = parser.parse_args()
    others = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as directory:
        # Compiled, as what is installed is, whatever the environment says.
        os.environ |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{directory}/compiled"}
        figures = [*_opening(options.rounds)]
        with _busy(Path(directory)) as home:
            figures += [*_idle(home), *_keys(home), *_hours(home)]
    print()
    good = [tell(figure) for figure in figures]
    if options.write:
        write(options.write, "dashboard", _table(figures, others))
    return 1 if options.check and not all(good) else 0


def _program(home: Home, *words: str) -> Program:
    return Program([*_REEF, *words], {"REEF_HOME": str(home.root), "PYTHONPATH": str(_ROOT)})


# -- opening ----------------------------------------------------------------------------------------


def _opening(rounds: int) -> Iterator[Figure]:
    """Milliseconds from the start to what is seen, in turns; the median of each. The first turn compiles."""
    homes = {records: many.home(records) for records in _RECORDS}
    empty: list[float] = []
    first: list[float] = []
    listed: dict[int, list[float]] = {records: [] for records in _RECORDS}
    with contextlib.ExitStack() as stack:
        for home in homes.values():
            ensure_daemon(home)
            stack.callback(stop_daemon, home)
        for _ in range(rounds + 1):
            with Program([sys.executable, "-c", _EMPTY], {}) as program:
                empty.append(program.until(lambda screen: "ready" in screen.row(0), "the empty app") - program.began)
            for records, home in homes.items():
                with _program(home) as program:
                    painted = program.until(_framed, "the first paint") - program.began
                    rows = program.until(_newest, f"the newest of {records} records") - program.began
                first += [painted] if records == _RECORDS[0] else []
                listed[records].append(rows)
    base, paint = statistics.median(empty[1:]) * 1e3, statistics.median(first[1:]) * 1e3
    few, some, most = (statistics.median(listed[records][1:]) * 1e3 for records in _RECORDS)
    yield Figure("Textual and an empty app: start to first paint", base, unit="ms")
    yield Figure("start to first paint", paint, unit="ms")
    yield Figure("start to first paint, over the empty app", paint / base, 1.5)
    yield Figure("start to the newest of 10³ records", few, unit="ms")
    yield Figure("start to the newest of 10³ records, over the empty app", few / base)
    yield Figure("start to the newest of 10⁵ records", some, unit="ms")
    yield Figure("start to the newest of 10⁶ records", most, unit="ms")
    yield Figure("10⁶ records over 10³", most / few, 2)


def _framed(screen: Screen) -> bool:
    """The bar and the keys are there; the rows come with the daemon's answer."""
    return "Reef" in screen.row(0) and "quit" in screen.row(screen.height - 1)


def _newest(screen: Screen) -> bool:
    return "the newest of them" in screen.text()


# -- while agents work ------------------------------------------------------------------------------


@contextlib.contextmanager
def _busy(folder: Path) -> Iterator[Home]:
    """A home whose daemon has a provider that costs nothing, and some records."""
    compiled(folder)
    with upstream(folder) as provider:
        home = Home(folder / "home")
        home.prepare()
        engine = f"{{base_url: 'http://127.0.0.1:{provider.port}/v1', api: openai, key: agent}}"
        home.config.write_text(f"server: {{port: 0}}\nengine: provider\nengines: {{provider: {engine}}}\n")
        ensure_daemon(home)
        try:
            with _agents(home, "--records", "200", "--pace", "0") as agents:
                agents.wait()
            yield home
        finally:
            stop_daemon(home)


@contextlib.contextmanager
def _agents(home: Home, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "bench.agents", str(home.root), *words]
    process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _idle(home: Home) -> Iterator[Figure]:
    """The daemon runs, nothing happens, the dashboard is open and has said all it has to."""
    with _program(home) as program:
        program.until(_listed, "the list")
        program.watch(3)
        before, written, began = program.cpu(), program.written, time.monotonic()
        program.watch(_IDLE_SECONDS)
        share = (program.cpu() - before) / (time.monotonic() - began)
        written = program.written - written
    yield Figure("CPU when idle", share * 100, 1, "%")
    yield Figure("written to the terminal when idle", written, 0, "B")


def _listed(screen: Screen) -> bool:
    return _selected(screen) is not None


def _selected(screen: Screen) -> int | None:
    """The selected line."""
    return next((y for y in range(screen.height) if screen.row(y).startswith(">")), None)


def _keys(home: Home) -> Iterator[Figure]:
    """Milliseconds from a key to the screen that it makes: in the list, at whose end something happens all the time,
    and in a trace that is being answered.
    """
    noise = random.Random(5)
    with _agents(home), _program(home) as program:
        program.until(_listed, "the list")
        program.watch(5)
        taken = list(_moving(program, noise))
        program.press("\r")
        program.until(lambda screen: "Esc" in screen.row(screen.height - 1), "the trace")
        program.watch(2)
        opened = list(_looking(program, noise))
    for where, times in (("in the list", taken), ("in a trace", opened)):
        yield Figure(f"key to paint {where}, 10 agents streaming, p50", statistics.median(times), unit="ms")
        yield Figure(f"key to paint {where}, 10 agents streaming, p99", _percentile(times, 99), 100, "ms")


def _moving(program: Program, noise: random.Random) -> Iterator[float]:
    """The selection goes up, down, and to the end that it follows."""
    program.press("G")
    program.watch(1)
    end = _selected(program.screen)
    assert end is not None
    for _ in range(_KEY_ROUNDS):
        for key, above in _KEYS:
            yield _painted(program, noise, key, partial(_at, end - above))


def _looking(program: Program, noise: random.Random) -> Iterator[float]:
    """The help comes over the whole screen, all of its text, and goes."""
    for _ in range(_KEY_ROUNDS):
        yield _painted(program, noise, "?", lambda screen: "one line down" in screen.text())
        yield _painted(program, noise, "q", lambda screen: "one line down" not in screen.text())


def _at(row: int, screen: Screen) -> bool:
    return _selected(screen) == row


def _painted(program: Program, noise: random.Random, key: str, seen: Callable[[Screen], bool]) -> float:
    """Milliseconds; a person's pause before it."""
    program.watch(noise.uniform(0.02, 0.08))
    at = program.press(key)
    return (program.until(seen, f"what {key} does", 10) - at) * 1e3


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) * percent // 100, len(values) - 1)]


def _hours(home: Home) -> Iterator[Figure]:
    """MB that are resident after as many records as come in the first quarter of an hour, in an hour and in two, told
    as fast as the daemon takes them. The first quarter fills what is kept and remembered.
    """
    client, resident = Client(home.socket), []
    with _program(home) as program:
        program.until(_listed, "the list")
        before = first = client.get("/reef/status")["counts"]["records"]
        for wanted in (first + _HOUR // 4, first + _HOUR, first + 2 * _HOUR):
            with _agents(home, "--records", str(wanted - before), "--pace", "0", "--chunks", "5") as agents:
                while agents.poll() is None:
                    program.watch(0.1)
            before = client.get("/reef/status")["counts"]["records"]
            assert before >= wanted
            program.watch(1)
            resident.append(program.memory())
    quarter, hour, two = resident
    yield Figure("memory after the first quarter of an hour's stream", quarter, unit="MB")
    yield Figure("memory after an hour's", hour, unit="MB")
    yield Figure("memory after a second hour's", two, unit="MB")
    yield Figure("what the first hour added after its first quarter", max(hour / quarter - 1, 0) * 100, 3, "%")
    yield Figure("what the second hour added", max(two / hour - 1, 0) * 100, 3, "%")


def _table(figures: Sequence[Figure], others: float) -> str:
    """``others`` is the load average before: where that is more than the cores, only ratios say something."""
    rows = []
    for figure in figures:
        value = f"{figure.value:.1f}".removesuffix(".0") if figure.value < 100 else f"{figure.value:.0f}"
        bound = "" if figure.bound is None else f"≤ {figure.bound:g} {figure.unit}".rstrip()
        rows.append(
            f"| {figure.name} | {value} {figure.unit} | {bound}{'' if figure.good else ' (missed)'} |\n".replace(
                "  ", " "
            )
        )
    where = f"{os.cpu_count()} shared cores, which others used at a load average of {others:.1f}"
    return f"Measured {time.strftime('%Y-%m-%d')}, {where}:\n\n| | | target |\n|---|---|---|\n" + "".join(rows)


if __name__ == "__main__":
    sys.exit(main())
