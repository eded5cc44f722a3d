"""``python -m bench.loop MODEL.gguf [--seeds 0 1 2] [--write README.md]``: the demo's own figures, a row a seed.

Each seed runs `reef demo --quick --json` in a new home. With ``--write`` the table between the README's markers is
replaced, so that what the README says was measured, with the date and the load it was measured under.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.figures import write

_ROOT: Final = Path(__file__).parents[1]
_HEAD: Final = (
    "| seed | weights before | after | verdict | facts before | after | rule before | after | verdict | minutes |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.loop", description="The whole loop, measured.")
    parser.add_argument("model", type=Path, help="the default model's GGUF file")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--write", type=Path, help="a file with the table's markers")
    options = parser.parse_args()
    rows = []
    for seed in options.seeds:
        rows.append(_row(seed, _measured(options.model, seed)))
        print(rows[-1], end="", flush=True)
    if options.write:
        measured = f"Measured {time.strftime('%Y-%m-%d')}, {os.cpu_count()} shared cores, no GPU:\n\n"
        write(options.write, "loop", measured + _HEAD + "".join(rows))
    return 0


def _measured(model: Path, seed: int) -> dict[str, Any]:
    """The demo's steps by name, its result as ``result``, and the minutes it took."""
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as home:
        environment = {**os.environ, "REEF_HOME": home, "PYTHONPATH": str(_ROOT)}
        reef = [sys.executable, "-m", "reef_cli.main"]
        try:
            _run([*reef, "models", "add", str(model), "--use"], environment)
            started = time.monotonic()
            lines = _run([*reef, "demo", "--quick", "--json", "--seed", str(seed)], environment).splitlines()
            minutes = (time.monotonic() - started) / 60
        finally:
            subprocess.run([*reef, "stop"], env=environment, check=False, capture_output=True)
    *steps, result = map(json.loads, lines)
    return {step["step"]: step for step in steps} | {"result": result, "minutes": minutes}


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done.stdout


def _row(seed: int, run: dict[str, Any]) -> str:
    weights, harness = run["result"]["weights"], run["result"]["harness"]
    before, after = run["before"], run["after"]
    cells = (
        seed,
        f"{weights['before']}/{weights['of']}",
        f"{weights['after']}/{weights['of']}",
        weights["verdict"],
        f"{before['facts']}/{before['facts_of']}",
        f"{after['facts']}/{after['facts_of']}",
        f"{harness['before']}/{harness['of']}",
        f"{harness['after']}/{harness['of']}",
        harness["verdict"],
        f"{run['minutes']:.1f}",
    )
    return f"| {' | '.join(map(str, cells))} |\n"


if __name__ == "__main__":
    sys.exit(main())
