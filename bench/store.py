"""What the store costs: a long session on disk, a record, a rebuilt request, pages of long lists.

    python -m bench.store [--turns 200] [--records 100000]

The session is made here: source text of the standard library as tool results, up to a last request of about 340 KB.
"""

import argparse
import json
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from bench.figures import Figure, tell
from bench.queries import searches, varied
from daemon.core.ids import new_id
from daemon.core.records import Dialect, End, Exchange, StoredMessage, TokenSpan, Transcript, Usage
from daemon.store import ledger
from daemon.store.connection import open_writer
from daemon.store.db import Store
from daemon.store.migrations import migrate
from daemon.store.names import Names
from daemon.store.preparing import Prepared

_HEAD = b'{"model":"m","messages":['
_FINAL_BYTES = 340_000


@dataclass(frozen=True)
class Turn:
    exchange: Exchange
    transcript: Transcript


def message(role: str, text: str, **extra: object) -> StoredMessage:
    raw = json.dumps({"role": role, "content": text, **extra}, ensure_ascii=False, separators=(",", ":")).encode()
    key = blake2b(f"{role}\0{text}".encode(), digest_size=16).digest()
    return StoredMessage(raw, key, role, text)


def source() -> str:
    files = sorted(Path(os.__file__).parent.glob("*.py"))[:80]
    return "".join(file.read_text(errors="ignore") for file in files)


def session(turns: int) -> Iterator[Turn]:
    """A coding session: a system prompt and tools, then calls and what they returned."""
    text, noise, at = source(), random.Random(7), 50_000
    tools = [{"name": f"tool{n}", "description": text[n * 700 : n * 700 + 400]} for n in range(8)]
    tail = b'],"tools":' + json.dumps(tools).encode() + b',"stream":true}'
    said = [
        message("system", text[10_000:18_000]),
        message("user", "Fix the failing test in lib. " + text[at : at + 200]),
    ]
    each = (_FINAL_BYTES - 14_000) // turns
    for number in range(turns):
        size = int(each * noise.uniform(0.2, 1.2))
        call = text[at + 150 : at + 150 + size // 5]
        answer = message("assistant", text[at : at + 150] + call, call_id=f"call_{noise.getrandbits(64):016x}")
        yield turn(said, answer, tail, number)
        result = message("tool", text[at + size : at + size * 2], tool_call_id=f"call_{number}")
        said = [*said, answer, result]
        at += size * 2


def turn(said: Sequence[StoredMessage], answer: StoredMessage, tail: bytes, number: int) -> Turn:
    body = _HEAD + b",".join(m.raw for m in said) + tail
    pieces = [answer.text[n : n + 24] for n in range(0, len(answer.text), 24)]
    events = (json.dumps({"id": f"chatcmpl-{number}", "choices": [{"delta": {"content": p}}]}) for p in pieces)
    response = "".join(f"data: {event}\n\n" for event in events).encode() + b"data: [DONE]\n\n"
    transcript = Transcript(
        _HEAD,
        b",",
        tail,
        tuple(said),
        bytes(16),
        answer,
        response,
        tools=8,
        usage=Usage(len(body) // 4, 200),
        model="m",
    )
    exchange = Exchange(
        receipt=new_id("rec"), scenario="default", dialect=Dialect.CHAT, path="/v1/chat/completions",
        started_ns=time.time_ns(), duration_us=1_000_000, first_byte_us=1000, request=body, response=response,
        stream=True, status=200, end=End.OK, engine="remote", model_asked="m", release_id="default@0",
    )  # fmt: skip
    return Turn(exchange, transcript)


def milliseconds(work: Callable[[], object], times: int) -> list[float]:
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begin) * 1000)
    return taken


def row(what: str, *values: str) -> None:
    print(f"{what:<44}" + "".join(f"{value:>14}" for value in values))


def storage(folder: Path, turns: int) -> None:
    path = folder / "session" / "reef.db"
    store, made, taken = Store.open(path), list(session(turns)), []
    for one in made:
        begin = time.perf_counter()
        store.append(one.exchange, lambda one=one: one.transcript).result()  # type: ignore[misc]
        taken.append((time.perf_counter() - begin) * 1e6)
    raw = sum(len(one.exchange.request) + len(one.exchange.response) for one in made)
    rebuilt = []
    for one in made:
        begin = time.perf_counter()
        same = store.request(one.exchange.receipt) == one.exchange.request
        rebuilt.append((time.perf_counter() - begin) * 1000)
        if not same:
            sys.exit(f"turn {len(rebuilt)} does not come back")
    wait_for_index(store, path, turns)
    problems = store.verify()
    store.close()
    size = path.stat().st_size
    print(
        f"\n{turns} turns, last request {len(made[-1].exchange.request) / 1000:.0f} KB, verify: {problems or 'sound'}"
    )
    row("raw requests and responses", f"{raw / 1e6:.2f} MB")
    row("on disk, search index included", f"{size / 1e6:.2f} MB", f"1/{raw / size:.0f}")
    empty = empty_store(folder)
    row("the same above an empty store's", f"{(size - empty) / 1e6:.2f} MB", f"1/{raw / (size - empty):.0f}")
    for table, bytes_ in tables(path):
        row(f"  {table}", f"{bytes_ / 1000:.0f} KB")
    late = sorted(taken[-turns // 4 :])
    row("append to ack, last quarter (FULL, one by one)", f"{late[len(late) // 2]:.0f} µs", f"max {late[-1]:.0f} µs")
    row("rebuild a request, p50 / max", f"{statistics.median(rebuilt):.2f} ms", f"{max(rebuilt):.2f} ms")
    tell(Figure("store: a session on disk, above an empty store, over its raw bodies", (size - empty) / raw, 1 / 50))
    tell(Figure("store: a request rebuilt byte for byte, p99", sorted(rebuilt)[-1 - turns // 100], 5, "ms"))
    record_cost(folder, made)


def empty_store(folder: Path) -> int:
    """Bytes that tables and indexes take before anything is in them."""
    path = folder / "empty" / "reef.db"
    Store.open(path).close()
    return path.stat().st_size


def record_cost(folder: Path, made: Sequence[Turn]) -> None:
    """What writing one record costs inside the transaction, without the commit."""
    path = folder / "cost" / "reef.db"
    path.parent.mkdir()
    db = open_writer(path, "normal")
    migrate(db)
    writer, taken = ledger.Ledger(Names()), []
    for one in made:
        db.execute("BEGIN IMMEDIATE")
        begin = time.thread_time()
        writer.append(db, Prepared(one.exchange, one.transcript))
        taken.append((time.thread_time() - begin) * 1e6)
        db.execute("COMMIT")
    db.close()
    late = sorted(taken[-len(taken) // 4 :])
    row("CPU of a record, last quarter, p50 / max", f"{late[len(late) // 2]:.0f} µs", f"{late[-1]:.0f} µs")


def wait_for_index(store: Store, path: Path, records: int) -> None:
    """The index fills while nothing waits."""
    db = sqlite3.connect(path)
    deadline = time.monotonic() + 600
    while db.execute("SELECT indexed FROM tally").fetchone()[0] < records and time.monotonic() < deadline:
        time.sleep(0.05)
    db.close()


def tables(path: Path) -> list[tuple[str, int]]:
    db = sqlite3.connect(path)
    try:
        return db.execute("SELECT name, sum(pgsize) AS n FROM dbstat GROUP BY name ORDER BY n DESC LIMIT 8").fetchall()
    except sqlite3.OperationalError:
        return []  # this SQLite has no dbstat
    finally:
        db.close()


def lists(folder: Path, records: int) -> None:
    path = folder / "lists" / "reef.db"
    store = Store.open(path, durability="normal")
    begin, noise, tail = time.perf_counter(), random.Random(1), b'],"stream":true}'
    pending, said, receipt = [], [message("system", "You help.")], ""
    for number in range(records):
        if number % 60 == 0:
            said = [message("system", "You help."), message("user", f"task {number}")]
        answer = message("assistant", f"answer {number} {noise.getrandbits(40):x}")
        one = turn(said[-8:] if len(said) > 8 else said, answer, tail, number)
        one = Turn(varied(one.exchange, number, records), one.transcript)
        pending.append(store.append(one.exchange, lambda one=one: one.transcript))  # type: ignore[misc]
        said = [*said, answer, message("tool", f"result {number}")]
        receipt = one.exchange.receipt if number == records // 2 else receipt
        if len(pending) >= 2000:
            for future in pending:
                future.result()
            pending.clear()
    for future in pending:
        future.result()
    loaded = time.perf_counter() - begin
    wait_for_index(store, path, records)
    indexed = time.perf_counter() - begin - loaded
    size = path.stat().st_size / 1e6
    print(f"\n{records} records: stored in {loaded:.0f} s, indexed in {indexed:.0f} s more, {size:.0f} MB")
    middle, session_id = str(records // 2), store.record(receipt).session
    queries: tuple[tuple[str, Callable[[], object]], ...] = (
        ("records, latest page", lambda: store.records()),
        ("records, a page in the middle", lambda: store.records(before=middle)),
        ("records after a seq", lambda: store.records(after=middle)),
        ("records of a session", lambda: store.records(session=session_id)),
        ("sessions, latest page", lambda: store.sessions()),
        ("sessions of a scenario, deep", lambda: store.sessions(scenario="default", before=middle)),
        ("a record", lambda: store.record(receipt)),
        ("a request", lambda: store.request(receipt)),
        ("last answer", lambda: store.last("default")),
        ("reports on a page", lambda: store.reports_on([receipt])),
        ("counts", lambda: store.counts()),
        *searches(store, session_id),
    )
    row("query", "p50", "p99", "max")
    slowest = 0.0
    for what, work in queries:
        taken = sorted(milliseconds(work, 200))
        row(what, *(f"{value:.2f} ms" for value in (taken[100], taken[197], taken[199])))
        slowest = max(slowest, taken[100])
    tell(Figure(f"store: the slowest page of {records} records, p50", slowest, 10, "ms"))
    store.close()


def spans(folder: Path, turns: int) -> None:
    """Token-native capture of a session of the same length: 50,000 tokens in the end."""
    path, noise = folder / "spans" / "reef.db", random.Random(5)
    store, context = Store.open(path, durability="normal"), tuple(noise.randrange(49_152) for _ in range(2000))
    said, count, receipts = [message("user", "start")], 0, []
    for number in range(turns):
        completion = tuple(noise.randrange(49_152) for _ in range(80))
        answer = message("assistant", f"answer {number}")
        one = turn(said, answer, b"]}", number)
        span = TokenSpan(context, completion, tuple(-noise.random() for _ in completion), "f" * 64)
        count += len(context) + len(completion)
        exchange = Exchange(**{name: getattr(one.exchange, name) for name in Exchange.__slots__} | {"span": span})
        store.append(exchange, lambda one=one: one.transcript).result()  # type: ignore[misc]
        receipts.append((exchange.receipt, span.prompt_ids))
        context = context + completion + tuple(noise.randrange(49_152) for _ in range(160))
        said = [*said, answer, message("tool", f"result {number}")]
    taken = milliseconds(lambda: store.span(receipts[-1][0]), 10)
    last = store.span(receipts[-1][0])
    if last is None or last.prompt_ids != receipts[-1][1]:
        sys.exit("a span does not come back")
    store.close()
    kept = sum(size for name, size in tables(path) if name == "span")
    print()
    row(f"spans of {turns} turns, raw at 4 bytes a token", f"{count * 4 / 1e6:.1f} MB", f"kept {kept / 1e6:.2f} MB")
    row("read the last span, p50", f"{statistics.median(taken):.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--records", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as folder:
        storage(Path(folder), options.turns)
        spans(Path(folder), options.turns)
        lists(Path(folder), options.records)


if __name__ == "__main__":
    main()
