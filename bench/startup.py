"""What a command costs before it does anything: wall time against bare Python, interleaved, best and median.

``python -m bench.startup [--rounds N] [--check]``: measures `reef status` on a daemon that runs (one is started in a
home of its own), the same without one, and `--help`, each through an entry point like the one that pip writes.
``--check`` exits 1 when `reef status` takes more than bare Python + 60 ms (PERFORMANCE.md), best against best.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from daemon.core.paths import Home
from reef_cli.lifecycle import ensure_daemon, stop_daemon

_BUDGET_MS = 60.0
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
    bare = min(times["python -c pass"])
    print(f"{'command':<34}{'best ms':>9}{'median':>9}{'over bare':>11}{'ratio':>7}")
    for name, taken in times.items():
        best = min(taken)
        print(f"{name:<34}{best:9.1f}{statistics.median(taken):9.1f}{best - bare:11.1f}{best / bare:7.2f}")
    over = min(times["reef status"]) - bare
    print(f"\nreef status: bare Python + {over:.1f} ms (budget {_BUDGET_MS:.0f})")
    return 1 if options.check and over > _BUDGET_MS else 0


def _measured(directory: Path, rounds: int) -> dict[str, list[float]]:
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
    times: dict[str, list[float]] = {name: [] for name in commands}
    ensure_daemon(home)
    try:
        for _ in range(rounds):
            for name, (command, place) in commands.items():
                times[name].append(_milliseconds(command, place))
    finally:
        stop_daemon(home)
    return times


def _milliseconds(command: list[str], home: Path) -> float:
    started = time.perf_counter()
    subprocess.run(
        command,
        env={**os.environ, "REEF_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return (time.perf_counter() - started) * 1e3


if __name__ == "__main__":
    sys.exit(main())
