"""``python -m bench [MODEL.gguf] [--quick]``: our figures in one run, beside the peers' where they are installed.

Commands against bare Python, the wrapper against the plain agent, requests through the daemon against other gateways,
the store against raw rows, the dashboard against an empty app and, with a model, the engine against xllamacpp, alone
and beside training. Each part runs alone as well: ``python -m bench.startup``, ``bench.wrapper``, … At the end stands
one table of what has a bound.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.figures import PLACE, kept


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="All benchmarks, in one run.")
    parser.add_argument("model", nargs="?", help="a GGUF file for the engine; without one that is left out")
    parser.add_argument("--peer", default=sys.executable, help="a Python that has xllamacpp")
    parser.add_argument("--quick", action="store_true", help="less of what takes long")
    options = parser.parse_args()
    quick = options.quick
    parts = [["startup"], ["wrapper"], ["proxy", *(["--quick"] if quick else [])]]
    parts.append(["store", *(["--records", "20000"] if quick else [])])
    parts.append(["dashboard", *(["--rounds", "2"] if quick else [])])
    if options.model:
        parts += [["engine", options.model, "--peer", options.peer], ["beside", options.model]]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as directory:
        figures = Path(directory) / "figures"
        figures.touch()
        for name, *arguments in parts:
            print(f"== {name}", flush=True)
            command = [sys.executable, "-m", f"bench.{name}", *arguments]
            done = subprocess.run(command, env={**os.environ, PLACE: str(figures)}, check=False)
            failed += done.returncode != 0
        print("== all")
        for figure in kept(figures):
            print(figure)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
