"""``python -m bench MODEL.gguf [--peer PYTHON]``: our figures in one run, beside a peer's where it is installed.

Commands against bare Python, the wrapper against the plain agent, the engine against xllamacpp, alone and beside
training, the store against raw rows. Each part runs alone as well: ``python -m bench.startup``, ``bench.wrapper``,
``bench.engine``, ``bench.beside``, ``bench.store``.
"""

import argparse
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="All benchmarks, in one run.")
    parser.add_argument("model", help="a GGUF file for the engine")
    parser.add_argument("--peer", default=sys.executable, help="a Python that has xllamacpp")
    options = parser.parse_args()
    engine = ("engine", options.model, "--peer", options.peer)
    parts = (("startup",), ("wrapper",), engine, ("beside", options.model), ("store",))
    failed = 0
    for name, *arguments in parts:
        print(f"== {name}", flush=True)
        failed += subprocess.run([sys.executable, "-m", f"bench.{name}", *arguments], check=False).returncode != 0
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
