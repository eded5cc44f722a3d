"""What a request costs on its way through Reef, beside no gateway at all and every peer that is installed here.

``python -m bench.proxy [--quick] [--check] [--rounds N] [--against NAME...]``: Reef as people run it (a daemon of its
own, recording on, every record on disk before an answer's end, tokens checked) in front of a provider that costs
nothing. Each round asks each server the same in turn; figures are medians, ratios are made within a round. ``--check``
exits 1 and names what misses its target. CPU and memory are those of the whole process tree, work that was put off
included. Peers: ``python -m bench.peers install``. On a machine that does something else, read the ratios.
"""

import argparse
import contextlib
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from bench import peers
from bench.figures import Figure, tell, write
from bench.traffic import Run, Server, Start, body, compiled, flush_time, free_port, load, started, upstream
from daemon.core.paths import Home
from daemon.server.auth import Tokens


@dataclass(frozen=True)
class Cell:
    """One kind of load: ``requests`` for what is fast, ``few`` for the others."""

    name: str
    size: int
    connections: int
    requests: int
    few: int
    stream: int = 0
    pace: int = 0


_CELLS: Final = (
    Cell("2 KB c1", 2000, 1, 300, 60),
    Cell("2 KB c16", 2000, 16, 1600, 160),
    Cell("100 KB c1", 100_000, 1, 120, 30),
    Cell("100 KB c8", 100_000, 8, 240, 32),
    Cell("1 MB c1", 1_000_000, 1, 40, 10),
    Cell("200 chunks c4", 2000, 4, 48, 12, stream=200),
    Cell("50 at 5 ms c4", 2000, 4, 16, 8, stream=50, pace=5),
)
_ONE: Final = ("2 KB c1", "100 KB c1", "1 MB c1")
_MANY: Final = ("2 KB c16", "100 KB c8")
_BODIES: Final = (*_ONE, *_MANY)
_FAST: Final = ("direct", "reef", "nginx")
_Key = Literal["p50", "p99", "rps", "cpu", "first", "chunk"]
_What = Literal["added p50", "requests/s", "CPU", "added chunk", "memory"]


@dataclass(frozen=True)
class Target:
    """Reef's figure over the peer's: at most ``bound``; of requests a second, at least."""

    peer: str
    what: _What
    bound: float
    cells: Sequence[str]


#: Memory is measured once, after all.
TARGETS: Final = (
    Target("litellm", "added p50", 1 / 20, _ONE),
    Target("litellm", "added p50", 1 / 40, _MANY),
    Target("litellm", "requests/s", 40, _MANY),
    Target("litellm", "CPU", 1 / 25, (*_BODIES, "200 chunks c4")),
    Target("litellm", "memory", 1 / 6, ("",)),
    Target("reef-infra", "added p50", 1 / 5, _ONE),
    Target("reef-infra", "added p50", 1 / 10, _MANY),
    Target("reef-infra", "requests/s", 8, _MANY),
    Target("reef-infra", "requests/s", 3, ("200 chunks c4",)),
    Target("reef-infra", "CPU", 1 / 5, (*_BODIES, "200 chunks c4")),
    Target("mlflow", "added p50", 1 / 2, _BODIES),
    Target("mlflow", "requests/s", 3, _MANY),
    Target("mlflow", "CPU", 1 / 2, (*_BODIES, "200 chunks c4")),
    Target("nginx", "added chunk", 2, ("50 at 5 ms c4",)),
)

#: A column: what it is called, and its key in a run.
_KEYS: Final[dict[str, _Key]] = {
    "added p50": "p50",
    "added p99": "p99",
    "requests/s": "rps",
    "CPU": "cpu",
    "first byte": "first",
    "added chunk": "chunk",
}
#: What each server did in each cell, a run a round.
_Runs = dict[tuple[str, str], list[Run]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.proxy", description="Requests through Reef and its peers.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round of fewer requests, about two minutes")
    parser.add_argument("--check", action="store_true", help="exit 1 where a target is missed")
    parser.add_argument("--write", type=Path, help="a file with the table's markers")
    parser.add_argument("--against", nargs="*", choices=list(peers.STARTS), help="default: all that are installed")
    parser.add_argument("--cells", nargs="*", choices=[cell.name for cell in _CELLS], help="default: all")
    options = parser.parse_args()
    against = peers.found() if options.against is None else options.against
    cells = [cell for cell in _CELLS if not options.cells or cell.name in options.cells]
    runs: _Runs = {}
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as directory, _servers(Path(directory), against) as servers:
        for _ in range(1 if options.quick else options.rounds):
            for cell in cells:
                for server in servers:
                    run = _run(Path(directory), server, cell, share=0.5 if options.quick else 1.0)
                    runs.setdefault((cell.name, server.name), []).append(run)
        memory = {server.name: server.memory() for server in servers}
        flush = flush_time(Path(directory))
    _table(runs, memory)
    print(f"a flush of 40 KB to this disk takes {flush:.1f} ms\n")
    figures = _targets(runs, memory)
    missed = [figure for figure in figures if not tell(figure)]
    print(f"\n{len(figures) - len(missed)} of {len(figures)} targets met")
    if options.write:
        write(
            options.write,
            "proxy",
            _readme(runs, memory, figures) + f"\nA flush of 40 KB to that disk took {flush:.1f} ms.\n",
        )
    return 1 if options.check and missed else 0


@contextlib.contextmanager
def _servers(folder: Path, against: Sequence[str]) -> Iterator[list[Server]]:
    """No gateway, Reef, and each peer, all in front of one provider."""
    compiled(folder)
    with contextlib.ExitStack() as stack:
        direct = stack.enter_context(upstream(folder))
        servers = [direct]
        for name in ("reef", *against):
            port = free_port()
            make = _reef if name == "reef" else lambda *all, name=name: peers.start(name, *all)
            servers.append(started(name, port, make(folder / name, port, direct.port), folder=folder))
            stack.callback(servers[-1].stop)
        yield servers


def _reef(folder: Path, port: int, provider: int) -> Start:
    home = Home(folder)
    home.prepare()
    engine = f"{{base_url: 'http://127.0.0.1:{provider}/v1', api: openai, key: agent}}"
    home.config.write_text(f"server: {{port: {port}}}\nengine: provider\nengines: {{provider: {engine}}}\n")
    env = {"REEF_HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "daemon.server"]
    return Start(command, [f"x-reef-token: {Tokens.load(home).agent}", "authorization: Bearer sk-provider"], env)


def _run(folder: Path, server: Server, cell: Cell, *, share: float) -> Run:
    file = body(folder, cell.size, stream=cell.stream, pace=cell.pace, model=server.model)
    requests = cell.requests if server.name in _FAST else cell.few
    return load(folder, server, file, connections=cell.connections, requests=max(4, int(requests * share)))


def _figures(runs: _Runs, cell: str, name: str, what: str) -> list[float]:
    """A figure of each round; what is added is counted from the same round without a gateway."""
    key = _KEYS[what]
    mine = [run[key] for run in runs[cell, name]]
    if what in ("requests/s", "CPU") or name == "direct":
        return mine
    return [max(0.1, one - other[key]) for one, other in zip(mine, runs[cell, "direct"], strict=True)]


def _table(runs: _Runs, memory: dict[str, float]) -> None:
    """A row a cell and server; the row without a gateway has whole times, the others what they add. Microseconds."""
    print(f"{'':<15}{'':<11}" + "".join(f"{column:>12}" for column in _KEYS))
    for cell, name in runs:
        row = [statistics.median(_figures(runs, cell, name, what)) for what in _KEYS]
        print(f"{cell if name == 'direct' else '':<15}{name:<11}" + "".join(f"{figure:12.0f}" for figure in row))
    told = [f"{name} {memory[name]:.0f}" for name in memory if name != "direct"]
    print(f"\nmemory, MB (PSS, after all of it): {', '.join(told)}")


def _targets(runs: _Runs, memory: dict[str, float]) -> list[Figure]:
    """Reef's ratio to each peer that is here, with its bound."""
    found = []
    for target in TARGETS:
        for cell in target.cells:
            if target.what == "memory":
                ratios = [memory["reef"] / memory[target.peer]] if target.peer in memory else []
            elif (cell, target.peer) in runs:
                ours, theirs = (_figures(runs, cell, name, target.what) for name in ("reef", target.peer))
                ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
            else:
                ratios = []
            if ratios:
                name = f"over {target.peer}: {target.what} {cell}".rstrip()
                more = target.what == "requests/s"
                found.append(Figure(name, statistics.median(ratios), target.bound, at_least=more))
    return found


def _readme(runs: _Runs, memory: dict[str, float], told: Sequence[Figure]) -> str:
    """The same as a table for people: a row a server."""
    cells = list(dict.fromkeys(cell for cell, _ in runs))
    rows = [f"| | {' | '.join(cells)} | MB |", "|---" * (len(cells) + 2) + "|"]
    for server in memory:
        keys = ("added p50", "requests/s", "CPU")
        figures = (
            "/".join(f"{statistics.median(_figures(runs, cell, server, key)):.0f}" for key in keys) for cell in cells
        )
        rows.append(f"| {server} | {' | '.join(figures)} | {memory[server]:.0f} |")
    met = [
        f"{sum(one.good for one in theirs)} of {len(theirs)} over {peer}"
        for peer in memory
        if (theirs := [one for one in told if one.name.startswith(f"over {peer}:")])
    ]
    return "\n".join([*rows, "", f"Targets met (`--check` lists them): {', '.join(met)}."]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
