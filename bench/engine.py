"""The embedded engine against xllamacpp (llama-server inside Python) on one model, in one run: tokens a second.

``python -m bench.engine MODEL.gguf [--peer PYTHON] [--rounds N]``: both serve alike (threads, slots, memory), each in a
process of its own, one working at a time, rounds interleaved, medians shown. `decode` counts the answers' tokens, and
`prompt` those of long prompts answered with one token; for 1 client and for 8 at once. ``PYTHON`` is one that has
xllamacpp; without it only our own figures are shown.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp

from daemon.core.config import EmbeddedConfig
from daemon.core.generation import Finished
from daemon.core.records import ChatRequest, Message, Sampling, Text, Usage
from daemon.engines.base import ModelFile
from daemon.engines.llama_cpp import LlamaCpp

CONTEXT, PARALLEL = 4096, 8
#: Measurement → clients, words of the prompt, most tokens of an answer, which count is the result.
CASES = {
    "decode, 1 client": (1, 8, 48),
    "decode, 8 clients": (8, 8, 48),
    "prompt, 1 client": (1, 200, 1),
    "prompt, 8 clients": (8, 200, 1),
}
Ask = Callable[[str, int], Awaitable[Usage]]

_PEER = """
import sys, time
import xllamacpp as x
model, context, parallel, threads = sys.argv[1], *map(int, sys.argv[2:])
p = x.CommonParams()
p.model.path, p.n_ctx, p.n_parallel, p.use_jinja = model, context * 2, parallel, True
p.kv_unified = True
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
p.port, p.verbosity = 0, 0
server = x.Server(p)
print("address", server.listening_address, flush=True)
sys.stdin.read()
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.engine")
    parser.add_argument("model", type=Path)
    parser.add_argument("--peer", default=sys.executable, help="a Python that has xllamacpp")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    has_peer = subprocess.run([options.peer, "-c", "import xllamacpp"], capture_output=True).returncode == 0
    if not has_peer:
        print("no xllamacpp: python -m venv DIR && DIR/bin/pip install xllamacpp, then add --peer DIR/bin/python")
    asyncio.run(_run(options.model, options.peer if has_peer else None, options.rounds))
    return 0


async def _run(model: Path, peer: str | None, rounds: int) -> None:
    async with contextlib.AsyncExitStack() as stack:
        engines = {"reef": await stack.enter_async_context(reef(model))}
        if peer:
            engines["xllamacpp"] = await stack.enter_async_context(_xllamacpp(model, peer))
        rates: dict[tuple[str, str], list[float]] = {}
        for number in range(rounds + 1):  # the first warms up
            for case in CASES:
                for name, ask in engines.items():
                    found = await rate(case, ask, f"{number} {name}")
                    if number:
                        rates.setdefault((case, name), []).append(found)
    print(f"{'tokens/s':<20}" + "".join(f"{name:>12}" for name in engines) + ("       ratio" if peer else ""))
    for case in CASES:
        medians = [statistics.median(rates[case, name]) for name in engines]
        ratio = f"{medians[0] / medians[1]:12.2f}" if peer else ""
        print(f"{case:<20}" + "".join(f"{median:12.1f}" for median in medians) + ratio)


async def rate(case: str, ask: Ask, salt: str) -> float:
    """Tokens a second over all clients. Prompts share nothing with earlier ones, so no cache answers."""
    clients, words, tokens = CASES[case]
    prompts = [_prompt(words, f"{salt} {case} {client}") for client in range(clients)]
    started = time.perf_counter()
    used = await asyncio.gather(*(ask(prompt, tokens) for prompt in prompts))
    seconds = time.perf_counter() - started
    counted = [usage.completion if tokens > 1 else usage.prompt - usage.cached for usage in used]
    return sum(counted) / seconds


def _prompt(words: int, seed: str) -> str:
    rng = random.Random(seed)
    nouns = ("river", "stone", "lamp", "cloud", "market", "engine", "garden", "letter")
    return " ".join(rng.choice(nouns) for _ in range(words)) + ". Write a long story about that."


@contextlib.asynccontextmanager
async def reef(model: Path) -> AsyncIterator[Ask]:
    file = ModelFile(model.stem, model, model.stat().st_size, "0" * 64, "", "")
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as directory:
        config = EmbeddedConfig(context=CONTEXT, parallel=PARALLEL)
        engine = LlamaCpp(model=lambda: file, config=config, log=Path(directory) / "log")

        async def ask(prompt: str, tokens: int) -> Usage:
            sampling = Sampling(max_tokens=tokens, temperature=0.7, seed=1)
            request = ChatRequest("default", (Message("user", (Text(prompt),)),), sampling=sampling)
            events = [event async for event in engine.generate(request)]
            assert isinstance(events[-1], Finished)
            return events[-1].usage

        try:
            await engine.warm()
            yield ask
        finally:
            await engine.close()


@contextlib.asynccontextmanager
async def _xllamacpp(model: Path, python: str) -> AsyncIterator[Ask]:
    arguments = [str(model), str(CONTEXT), str(PARALLEL), str(len(os.sched_getaffinity(0)))]
    process = await asyncio.create_subprocess_exec(
        python, "-c", _PEER, *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = b""
        while not line.startswith(b"address"):
            line = await process.stdout.readline()
            assert line, "xllamacpp did not start"
        address = line.split()[1].decode()
        base = address if address.startswith("http") else f"http://{address}"
        async with aiohttp.ClientSession() as session:

            async def ask(prompt: str, tokens: int) -> Usage:
                body = {
                    "messages": [{"role": "user", "content": prompt}],
                    "max_tokens": tokens,
                    "temperature": 0.7,
                    "seed": 1,
                }
                async with session.post(f"{base}/v1/chat/completions", json=body) as response:
                    answer = json.loads(await response.read())
                cached = answer["timings"].get("cache_n", 0)
                return Usage(answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"], cached)

            yield ask
    finally:
        process.stdin.close()
        process.terminate()
        await process.wait()


if __name__ == "__main__":
    sys.exit(main())
