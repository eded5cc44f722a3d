"""What a command costs before it does anything: wall and CPU time against bare Python, interleaved.

``python -m bench.startup [--rounds N] [--check]``: measures `reef status` on a daemon that runs (one is started in a
home of its own), the same without one, and `--help`, each through an entry point like the one that pip writes.
``--check`` exits 1 when `reef status` takes more than bare Python + 60 ms (PERFORMANCE.md), best against best. On a
machine that does something else, read the CPU column.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench.figures import Figure, tell
from daemon.core.paths import Home
from reef_cli.lifecycle import ensure_daemon, stop_daemon

_BUDGET_MS = 60.0
#: Wall and CPU time of each run, by command; the first is what the others are compared with.
Times = dict[str, list[tuple[float, float]]]
#: As pip writes them for ``[project.scripts]``.
_ENTRY_POINT = """#!{python}
import re
import sys
from reef_cli.main import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.startup")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1]))
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as directory:
        times = _measured(Path(directory), options.rounds)
    over = table(times, "over bare")["reef status"]
    print()
    good = tell(Figure("reef status over bare Python", over, _BUDGET_MS, "ms"))
    return 1 if options.check and not good else 0


def interleaved(commands: Mapping[str, tuple[list[str], Path]], rounds: int) -> Times:
    """Each command in its home, one after the other, ``rounds`` times."""
    times: Times = {name: [] for name in commands}
    for _ in range(rounds):
        for name, (command, place) in commands.items():
            times[name].append(_milliseconds(command, place))
    return times


def table(times: Times, over: str) -> dict[str, float]:
    """Print the figures; milliseconds that each command takes over the first, best against best."""
    print(f"{'command':<34}{'best ms':>9}{'median':>9}{over:>11}{'ratio':>7}{'CPU':>8}{over:>11}")
    best = {name: (min(wall for wall, _ in taken), min(cpu for _, cpu in taken)) for name, taken in times.items()}
    first = next(iter(best.values()))
    for name, (wall, cpu) in best.items():
        median = statistics.median(one for one, _ in times[name])
        figures = (wall, median, wall - first[0], wall / first[0], cpu, cpu - first[1])
        print("{:<34}{:9.1f}{:9.1f}{:11.1f}{:7.2f}{:8.1f}{:11.1f}".format(name, *figures))
    return {name: wall - first[0] for name, (wall, _) in best.items()}


def _measured(directory: Path, rounds: int) -> Times:
    entry = directory / "reef"
    entry.write_text(_ENTRY_POINT.format(python=sys.executable))
    entry.chmod(0o700)
    home = Home(directory / "home")
    home.prepare()
    home.config.write_text("server: {port: 0}\n")
    reef = str(entry)
    commands = {
        "python -c pass": ([sys.executable, "-c", "pass"], home.root),
        "reef status": ([reef, "status"], home.root),
        "reef status (daemon down)": ([reef, "status"], directory / "nothing"),
        "reef --help": ([reef, "--help"], home.root),
        "reef traces list (through Typer)": ([reef, "traces", "list"], home.root),
        "reef good --help (through Typer)": ([reef, "good", "--help"], home.root),
    }
    ensure_daemon(home)
    try:
        return interleaved(commands, rounds)
    finally:
        stop_daemon(home)


def _milliseconds(command: list[str], home: Path) -> tuple[float, float]:
    """Wall and CPU time of one run."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command,
        env={**os.environ, "REEF_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall * 1e3, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


if __name__ == "__main__":
    sys.exit(main())
