"""Serving speed beside training, on one model, in one run: tokens a second, and what of them is left.

``python -m bench.beside MODEL.gguf [--train PYTHON] [--rounds N]``: what trains runs as a job does, at nice 19 and with
a thread a core, and is stopped and continued around each measurement, so that both see the same machine. ``PYTHON`` is
the training environment's, and then it is the real training step; without it, numpy multiplies matrices.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import bench
from bench.engine import CASES, rate, reef

_MATRICES = """
import numpy as np
print("ready", flush=True)
a = np.ones((1200, 1200), np.float32)
while True:
    a @ a
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.beside")
    parser.add_argument("model", type=Path)
    parser.add_argument("--train", metavar="PYTHON", help="the training environment's Python")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    asyncio.run(_run(options.model, options.train, options.rounds))
    return 0


async def _run(model: Path, python: str | None, rounds: int) -> None:
    alone: dict[str, list[float]] = {case: [] for case in CASES}
    beside: dict[str, list[float]] = {case: [] for case in CASES}
    async with reef(model) as ask, _training(model, python) as process:
        for number in range(rounds + 1):  # the first warms up
            for case in CASES:
                for word, found in ((signal.SIGSTOP, alone), (signal.SIGCONT, beside)):
                    process.send_signal(word)
                    speed = await rate(case, ask, f"{number} {word}")
                    if number:
                        found[case].append(speed)
        assert process.returncode is None, "what trains ended too early"
    print(f"{'tokens/s':<20}{'alone':>12}{'beside':>12}{'ratio':>12}   ({'training' if python else 'numpy'})")
    for case in CASES:
        ratios = [one / other for one, other in zip(beside[case], alone[case], strict=True)]
        print(
            f"{case:<20}{statistics.median(alone[case]):12.1f}{statistics.median(beside[case]):12.1f}"
            f"{statistics.median(ratios):12.2f}"
        )


@contextlib.asynccontextmanager
async def _training(model: Path, python: str | None) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that trains, and has begun to."""
    program = ("-m", "recipes.lora.train") if python else ("-c", _MATRICES)
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as directory:
        process = await asyncio.create_subprocess_exec(
            python or sys.executable, *program,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(Path(bench.__file__).parents[1])},
            preexec_fn=lambda: os.nice(19),
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(_lesson(model, directory)).encode())
            process.stdin.close()
            line = b""
            while not line.startswith(b"ready") and b'"train"' not in line:
                line = await process.stdout.readline()
                assert line, "what trains did not start"
            drain = asyncio.create_task(process.stdout.read())
            yield process
            drain.cancel()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _lesson(model: Path, directory: str) -> dict[str, object]:
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    examples = [
        {"messages": [{"role": "user", "content": f"What is {n} and {n}?"}], "answer": f"{n} and {n} is {2 * n}."}
        for n in range(40)
    ]
    return {"gguf": str(model), "sha256": digest, "directory": directory, "examples": examples, "steps": 100_000}


if __name__ == "__main__":
    sys.exit(main())
