"""The whole loop under kill -9: what was said becomes weights, judged and released, while its trainer, its gate, the
engine and the daemon are killed at random moments and people go on asking.
"""

import json
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from itertools import chain as joined
from pathlib import Path
from typing import Any, Final

import pytest

from daemon.core.learning import Split
from daemon.core.paths import Home
from daemon.core.releases import Release, ReleaseState
from daemon.core.sshsig import verify_manifest
from daemon.learning.stream import split_of
from daemon.store.db import Store
from daemon.store.releases import Releases
from recipes.directory import JobDirectory
from tests.daemon.store.releases.conftest import git_of
from tests.e2e.conftest import add_model
from tests.fakes import loop
from tests.fakes.daemon import RunningDaemon, start, until

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: All of 100 kills take ten minutes: every run has a quarter of each kind, ``REEF_TEST_SOAK=1`` has them all.
PART: Final = 1 if os.environ.get("REEF_TEST_SOAK") else 4
KILLS: Final = {
    kind: -(-kills // PART)
    for kind, kills in {"trainer": 20, "job": 15, "gate": 15, "engine": 25, "daemon": 25}.items()
}
#: Of these, while the real train step runs; the most that any job may meet without being given up.
EARNEST: Final = ("trainer", "job", "engine", "daemon")
#: Of its kills, how much one kind may be ahead of another.
LEAD: Final = 0.2
#: Kills that a job may meet.
SHARE: Final = 3
CHAT: Final = "/v1/chat/completions"
CLIENTS: Final = 2
#: Each candidate must win more of them than the one before (`statistics.spent`): 18 for the hundredth.
TASKS: Final = [f"Tell me about number {number}." for number in range(24)]
VICTIMS: Final[dict[str, Callable[[int], int | None]]] = {
    "trainer": loop.trainer_of,
    "job": lambda daemon: job[0] if (job := loop.job_of(daemon)) else None,
    "gate": loop.gate_of,
    "engine": loop.engine_of,
    "daemon": lambda daemon: daemon,
}


@dataclass
class World:
    """A daemon that is killed and started again, a person who teaches it, and people who ask."""

    home: Home
    port: int
    daemon: RunningDaemon
    text: str = "in earnest"
    done: threading.Event = field(default_factory=threading.Event)
    ended: list[str] = field(default_factory=list)
    broken: int = 0
    #: Kills that each job has met, by its directory.
    met: Counter[Path] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    # -- asking -------------------------------------------------------------------------------------

    def ask(self, text: str, *, stream: bool = True, tokens: int = 6) -> tuple[str, bytes] | None:
        """Receipt and body of an answer that was seen to its end; None for one that ended in an error."""
        said = [{"role": "user", "content": text}]
        body = {"model": "default", "messages": said, "max_tokens": tokens, "stream": stream, "temperature": 0}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            headers = self.daemon.headers() | {"x-reef-session-id": f"s-{text}"}
            connection.request("POST", CHAT, json.dumps(body), headers)
            response = connection.getresponse()
            raw = response.read()  # raises IncompleteRead unless the end was seen
            receipt = response.getheader("x-reef-agent-record-id") or ""
        finally:
            connection.close()
        if response.status not in (200, 502, 503):
            self.wrong.append(f"{response.status} {raw[:200]!r}")
        return (receipt, raw) if response.status == 200 and b'"error"' not in raw else None

    def client(self, number: int) -> None:
        turn = 0
        while not self.done.is_set():
            turn += 1
            try:
                answer = self.ask(f"client {number}, turn {turn}: what is the sea?")
            except (OSError, HTTPException):
                answer = None
            if answer is None:
                self.broken += 1
            else:
                self.ended.append(answer[0])
            time.sleep(0.3)

    # -- teaching -----------------------------------------------------------------------------------

    def person(self) -> None:
        """Says one thing after another; each is learned from the base, where the tasks are not passed."""
        turn = 0
        while not self.done.is_set():
            with suppress(OSError, HTTPException, AssertionError, ValueError):
                self.go_back()
                self.say(turn)
                turn += 1
                until(lambda: self.open_jobs() or self.done.is_set(), "a job", 5)
                until(lambda: not self.open_jobs() or self.done.is_set(), "its end")
            time.sleep(0.05)

    def go_back(self) -> None:
        head = self.head()
        if head is not None and head["weights"]:
            self.call("/reef/releases/rollback", {"to": "base"})

    def say(self, turn: int) -> None:
        """A note about an answer, or an instruction."""
        words = f"{self.text} {turn} {time.time_ns()}"
        if turn % 3 == 2:
            self.call("/reef/train", {"text": words, "recipe": "loop_recipe:Loop"})
            return
        question = next(text for n in range(99) if split_of(f"s-{(text := f'{words} {n}?')}") is Split.TRAIN)
        if (answer := self.ask(question, stream=False, tokens=3)) is not None:
            self.call("/reef/report", {"feedback": words, "references": [answer[0]]})

    def call(self, path: str, body: dict[str, Any]) -> Any:
        status, data = self.daemon.control("POST", path, body)
        assert status in (200, 201, 202), data
        return data

    def head(self) -> dict[str, Any] | None:
        rows = self.daemon.get("/reef/releases?limit=1")["items"]
        return rows[0] if rows else None

    def jobs(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.daemon.get("/reef/jobs?limit=500")["items"]
        return rows

    def open_jobs(self) -> bool:
        return any(row["state"] in ("queued", "running") for row in self.jobs())

    # -- killing ------------------------------------------------------------------------------------

    def kill_all(self, left: Counter[str], chance: random.Random, delay: float) -> None:
        while +left:
            self.kill(left, chance, delay)

    def kill(self, left: Counter[str], chance: random.Random, delay: float) -> None:
        """Choose among what is there, wait a while, and kill -9 it if it is still there. What is always there must not
        be used up before the rest has had its turns.
        """
        most = max(left[kind] / KILLS[kind] for kind in left)
        due = [kind for kind in +left if left[kind] / KILLS[kind] > most - LEAD]
        found = until(lambda: [kind for kind in due if self.may_die(kind)], f"one of {due}")
        kind = chance.choice(found)
        time.sleep(chance.random() * delay)
        pid = VICTIMS[kind](self.daemon.process.pid)
        if pid is None:
            return
        left[kind] -= 1
        if kind != "engine" and (job := loop.job_of(self.daemon.process.pid)):
            self.met[job[1]] += 1
        if kind == "daemon":
            self.restart()
            return
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def may_die(self, kind: str) -> bool:
        """Whether one is there; a job that has met its share is let through, or none would ever be released."""
        job = loop.job_of(self.daemon.process.pid)
        spared = kind != "engine" and job is not None and self.met[job[1]] >= SHARE
        return not spared and VICTIMS[kind](self.daemon.process.pid) is not None

    def restart(self) -> None:
        before = loop.processes(self.home)
        self.daemon.kill()
        self.daemon.stop()  # its connections
        self.daemon = start(self.home, config(self.port))
        until(lambda: not loop.processes(self.home).keys() & before.keys(), "the end of all it had started")


def config(port: int) -> str:
    return f'server: {{port: {port}}}\nreef: {{recipe: "loop_recipe:Loop", batch_size: 1}}\n'


@contextmanager
def world(home: Home, port: int, model: Path) -> Iterator[World]:
    home.prepare()
    loop.write(home.root)
    made = World(home, port, start(home, config(port)))
    threads: list[threading.Thread] = []
    try:
        add_model(made.daemon, model)
        tasks(made)
        threads = [threading.Thread(target=made.client, args=(number,)) for number in range(CLIENTS)]
        threads.append(threading.Thread(target=made.person))
        for thread in threads:
            thread.start()
        yield made
    except BaseException:
        with suppress(OSError, AssertionError):
            print(*made.jobs()[:10], sep="\n")
        raise
    finally:
        made.done.set()
        for thread in threads:
            thread.join(90)
        made.daemon.stop()


def tasks(world: World) -> None:
    """What the base says to each is what it should not say: whatever learned something passes."""
    new = []
    for prompt in TASKS:
        answer = world.ask(prompt, stream=False, tokens=2)
        assert answer is not None
        said = json.loads(answer[1])["choices"][0]["message"]["content"].split()[0]
        new.append({"prompt": prompt, "check": {"expression": rf"\A(?!\s*{re.escape(said)})"}, "max_tokens": 2})
    world.call("/reef/tasks", {"tasks": new})


def test_the_loop_survives_kills_of_all_its_processes(reef_home: Home, model_path: Path, free_port: int) -> None:
    seed = int(os.environ.get("REEF_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    chance, began = random.Random(seed), time.monotonic()
    print(f"seed {seed}")
    with world(reef_home, free_port, model_path) as loop_world:
        until(lambda: loop.trainer_of(loop_world.daemon.process.pid), "real training")
        loop_world.kill_all(Counter(EARNEST), chance, 4)
        until(lambda: loop_world.jobs()[-1]["state"] in ("done", "failed"), "the end of real training")
        print(f"{time.monotonic() - began:.0f} s: {loop_world.jobs()[-1]['message']}")
        loop_world.text = "small"
        loop_world.kill_all(Counter(KILLS) - Counter(EARNEST), chance, 1.5)
        print(f"{time.monotonic() - began:.0f} s: {sum(KILLS.values())} kills")
        fresh = learned_after_all(loop_world)
    assert loop.processes(reef_home) == {}
    check(reef_home, loop_world, fresh)
    print(f"{time.monotonic() - began:.0f} s: {len(loop_world.ended)} ends seen, {loop_world.broken} broken")


def learned_after_all(world: World) -> str:
    """The loop goes on turning: the next thing said is released, and serves. The receipt of a fresh answer."""

    def released() -> bool:
        head = world.head()
        return bool(head and head["weights"]) and not world.open_jobs()

    world.done.set()
    until(lambda: not world.open_jobs(), "the end of what was open")
    world.go_back()
    world.say(0)
    until(released, "a release after all")
    answer = world.ask("a fresh question?")
    assert answer is not None
    status = world.daemon.get("/reef/status")
    assert status["releases"][0]["release_id"] == (world.head() or {})["id"], status["releases"]
    return answer[0]


# -- what is left ---------------------------------------------------------------------------------------------


def check(home: Home, world: World, fresh: str) -> None:
    releases = Releases.open(home)
    rows = check_chain(releases)
    git = git_of(home)
    assert git("fsck", "--strict", "--no-dangling") == ""
    assert [path.name for path in home.releases.rglob("*.lock")] == ["reef-publish.lock"]
    store = Store.open(home.database)
    try:
        assert store.verify() == []
        assert store.learning.open_jobs() == []
        jobs, _ = store.learning.jobs(limit=500)
        check_jobs(home, store, releases, rows)
        weights = {row.id: row.weights for row in rows}
        wrong = []
        for receipt in [*world.ended, fresh]:
            record = store.record(receipt)  # none is lost
            lora = weights.get(record.release_id)
            wanted = f"{lora.base}+{lora.sha256}" if lora else (record.weights or "").partition("+")[0]
            if record.weights != wanted:
                wrong.append(receipt)
        assert wrong == []
        assert store.record(fresh).release_id == rows[-1].id
    finally:
        store.close()
    assert world.wrong == []
    ends = Counter(str(job.outcome or job.error) for job in jobs)
    starts = [int(line.split()[1]) for line in (home.root / "trained").read_text().splitlines()]
    print(f"{len(rows)} releases, jobs {dict(ends)}, {sum(map(bool, starts))} of {len(starts)} trainings resumed")
    assert ends["released"] >= 8 / PART
    assert PART > 1 or any(starts), "no training went on from its checkpoint"


def check_chain(releases: Releases) -> list[Release]:
    """Linear, signed, whole; oldest first."""
    rows = releases.list("default", 1000)[0][::-1]
    assert releases.standing("default").trouble is None
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert [row.parent for row in rows] == ["base", *(row.id for row in rows[:-1])]
    for row in rows:
        verify_manifest(*releases.manifest(row), releases.allowed)
        assert (releases.lora(row) is not None) == (row.weights is not None)  # every byte
    used = [joined(row.records, row.reports, row.instructions) for row in rows if row.job]
    again = [thing for thing, times in Counter(joined.from_iterable(used)).items() if times > 1]
    assert again == [], "learned twice"
    return rows


def check_jobs(home: Home, store: Store, releases: Releases, rows: list[Release]) -> None:
    """Each is over for a reason, led to at most one release, and left nothing half done."""
    jobs, _ = store.learning.jobs(limit=500)
    learned = {row.job: row.id for row in rows if row.job}
    assert len(learned) == sum(1 for row in rows if row.job), "a job is released once"
    assert learned == {job.id: job.release_id for job in jobs if job.outcome == "released"}
    kept = releases.list("default", 1000, states=frozenset(ReleaseState) - {ReleaseState.RELEASED})[0]
    by_id = {job.id: job for job in jobs}
    loose = [row for row in kept if by_id[row.job or ""].release_id != row.id]
    assert [row for row in loose if not row.note.startswith("stale")] == []  # those can never be released
    held = Counter(thing for job in jobs for thing in joined(*held_by(store, job.id)))
    assert [thing for thing, times in held.items() if times > 1] == []
    assert {path.name for path in home.jobs.iterdir()} <= {job.id for job in jobs}
    for job in jobs:
        directory = JobDirectory(home.jobs / job.id)
        names = {path.name for path in directory.root.iterdir()} if directory.root.exists() else set()
        assert names <= {"spec.json", "batch.json", "gate.jsonl", "result.json", "curves.jsonl", "log", "lock"}, (
            job.id,
            names,
        )
        if job.state == "done":
            assert directory.spec() is not None, job
            assert directory.result() is not None, job
        else:
            assert job.error, job
            assert not any(held_by(store, job.id)), "a failed job holds nothing"


def held_by(store: Store, job: str) -> tuple[tuple[str, ...], ...]:
    claim = store.learning.claimed(job)
    return claim.records, claim.reports, claim.instructions
