"""What ``reef-pi`` costs before Pi begins: wall and CPU time over the same program started plainly, interleaved.

``python -m bench.wrapper [--rounds N] [--check] [--pi HOME]``: on a daemon of its own, without and with a signed
release of 22 files; the agent is a program that ends at once. ``--pi HOME``: also real Pi's ``--version``, from an
installation there. ``--check`` exits 1 over 150 ms. On a machine that does something else, read the CPU column.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.figures import Figure, tell
from bench.startup import interleaved, table
from daemon.core.paths import Home
from reef_cli.lifecycle import ensure_daemon, stop_daemon
from tests.fakes import agents, chain

_BUDGET_MS = 150.0
_SKILL = "---\nname: skill-{n}\ndescription: The skill of number {n}.\n---\n" + "A line of it.\n" * 200


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.wrapper")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--pi", type=Path, help="a home in which Pi is installed and a daemon runs")
    options = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1]))
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as directory:
        over = _measured(Home(Path(directory)), options.rounds)
    if options.pi:
        _pi(Home(options.pi.absolute()), options.rounds)
    print()
    good = tell(Figure("reef-pi with a release over the plain program", over, _BUDGET_MS, "ms"))
    return 1 if options.check and not good else 0


def _measured(home: Home, rounds: int) -> float:
    agents.install(home)
    home.config.write_text("server: {port: 0}\n")
    place = home.agents / "pi" / "install.json"
    true = shutil.which("true") or "/bin/true"
    place.write_text(json.dumps({**json.loads(place.read_text()), "command": [true]}))
    ensure_daemon(home)
    try:
        _table(home, {"true": [true], "reef-pi → true, no release": [agents.command(home)]}, rounds)
        skills = {f"skills/skill-{n}/SKILL.md": _SKILL.format(n=n) for n in range(20)}
        chain.publish(home, harness={**chain.HARNESS, **skills})
        return _table(home, {"true": [true], "reef-pi → true, a release": [agents.command(home)]}, rounds)
    finally:
        stop_daemon(home)
        subprocess.run(["chmod", "-R", "u+w", str(home.root)], check=True)


def _pi(home: Home, rounds: int) -> None:
    plain = json.loads((home.agents / "pi" / "install.json").read_text())["command"]
    _table(
        home, {"pi --version": [*plain, "--version"], "reef-pi --version": [agents.command(home), "--version"]}, rounds
    )


def _table(home: Home, commands: dict[str, list[str]], rounds: int) -> float:
    """Print the figures; milliseconds that the last command takes over the first."""
    times = interleaved({name: (command, home.root) for name, command in commands.items()}, rounds)
    return list(table(times, "over plain").values())[-1]


if __name__ == "__main__":
    sys.exit(main())
