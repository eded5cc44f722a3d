"""A person's own recipe from a note to a release, and jobs and daemons killed on the way: nothing is learned twice."""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from daemon.core.paths import Home
from daemon.store.db import Store
from daemon.store.releases import Releases
from tests.fakes.daemon import RunningDaemon, running_daemon, start, until
from tests.fakes.provider import Provider, Turn, running_provider
from tests.fakes.recipes import GOOD

CHAT = "/v1/chat/completions"
RULE = "Answer in one short sentence."


def obeying(asked: dict[str, Any]) -> Turn:
    """What a provider says that does as its system prompt tells it."""
    told = " ".join(str(said["content"]) for said in asked["messages"] if said["role"] == "system")
    return Turn("One sentence." if RULE in told else "One sentence. And another one. And a third.")


@contextmanager
def served(home: Home, *, seconds: float = 0.0, policy: str = "auto") -> Iterator[tuple[RunningDaemon, Provider]]:
    (home.root / "my_recipe.py").write_text(GOOD)
    with running_provider() as provider:
        provider.reply = obeying
        with running_daemon(home, config(provider, seconds, policy), environment={"REEF_TEST_KEY": "k"}) as daemon:
            yield daemon, provider


def config(provider: Provider, seconds: float, policy: str) -> str:
    learns = f'{{recipe: "my_recipe:MyRecipe", batch_size: 1, seconds: {seconds}}}'
    return provider.config(key="env:REEF_TEST_KEY") + f"learning: {{policy: {policy}}}\nreef: {learns}\n"


def note(daemon: RunningDaemon, text: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": f"A question before {text!r}"}]}
    _, headers, _ = daemon.post(CHAT, body)
    receipt = headers["x-reef-agent-record-id"]
    status, _, raw = daemon.post("/reef/report", {"feedback": text, "references": [receipt]})
    assert status == 200, raw
    return str(json.loads(raw)["agent_record_id"])


def tasks(daemon: RunningDaemon, count: int = 6) -> None:
    new = [{"prompt": f"Held out {n}?", "check": {"form": "one_sentence"}} for n in range(count)]
    status, told = daemon.control("POST", "/reef/tasks", {"tasks": new})
    assert status == 200, told


def over(daemon: RunningDaemon, count: int = 1, seconds: float = 60) -> list[dict[str, Any]]:
    """Wait until so many jobs are over and none is open; oldest first."""

    def settled() -> list[dict[str, Any]] | None:
        rows = daemon.get("/reef/jobs?limit=500")["items"]
        done = [row for row in rows if row["state"] in ("done", "failed", "cancelled")]
        return rows[::-1] if len(done) == len(rows) >= count else None

    found: list[dict[str, Any]] = until(settled, f"{count} jobs are over", seconds)
    return found


def test_a_note_becomes_a_release_by_a_persons_own_recipe(reef_home: Home) -> None:
    assert len([line for line in GOOD.splitlines() if line.strip()]) <= 40
    with served(reef_home) as (daemon, _):
        tasks(daemon)
        note(daemon, RULE)
        (job,) = over(daemon)
        assert (job["state"], job["outcome"], job["error"]) == ("done", "released", None), job
        (release,) = daemon.get("/reef/releases")["items"]
        assert (release["id"], release["job"], release["recipe"]) == (
            job["release_id"],
            job["id"],
            "my_recipe:MyRecipe",
        )
        assert (release["kind"], release["head"]) == ("learned", True)
        _, headers, _ = daemon.post(CHAT, {"model": "m", "messages": [{"role": "user", "content": "and now?"}]})
        assert headers["x-reef-release-id"] == job["release_id"]
        note(daemon, "Use uv, not pip.")
        second = over(daemon, 2)[1]
        assert second["outcome"] == "inconclusive", "one rule more, which no task asks for"
        assert len(daemon.get("/reef/releases?state=all")["items"]) == 2


def test_under_review_a_release_waits_and_an_instruction_names_it(reef_home: Home) -> None:
    with served(reef_home, policy="review") as (daemon, _):
        tasks(daemon)
        status, told = daemon.control("POST", "/reef/train", {"text": RULE})
        assert (status, told["job"]["recipe"]) == (200, "my_recipe:MyRecipe")
        (job,) = over(daemon)
        assert (job["outcome"], job["instructions"]) == ("pending", [told["instruction"]])
        assert daemon.get("/reef/releases")["items"] == []
        (waiting,) = daemon.get("/reef/releases?state=pending")["items"]
        assert waiting["instructions"] == [told["instruction"]]


def test_a_head_that_moved_meanwhile_is_not_overwritten_and_nothing_is_used_up(reef_home: Home) -> None:
    with served(reef_home, seconds=3) as (daemon, _):
        tasks(daemon)
        note(daemon, RULE)
        until(lambda: (daemon.get("/reef/jobs")["items"] or [{}])[0].get("state") == "running", "the job runs")
        releases = Releases.open(reef_home)
        from daemon.core.releases import Candidate, ReleaseState

        other = Candidate("default", "base", "meanwhile", "hand", "job_other", harness={"playbook.md": "# Playbook\n"})
        releases.publish(releases.propose(other, None, ReleaseState.PENDING), "base")
        (job,) = over(daemon)
        assert job["state"] == "failed", job
        assert job["records"] == 0
        assert [release["reason"] for release in daemon.get("/reef/releases")["items"]] == ["meanwhile"]


def test_events_tell_the_job(reef_home: Home) -> None:
    with served(reef_home) as (daemon, _):
        connection = daemon.connect()
        connection.request("GET", "/reef/events", headers={"authorization": f"Bearer {daemon.control_token}"})
        response = connection.getresponse()
        note(daemon, RULE)
        states: list[str] = []
        name = ""
        while "done" not in states:
            line = response.readline().decode().strip()
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name == "job":
                states.append(json.loads(line.removeprefix("data: "))["state"])
        assert states[0] == "queued"
        assert states[-2:] == ["running", "done"]


# -- kill -9 ------------------------------------------------------------------------------------------------


def pid_of_job(daemon: int) -> int | None:
    """The job's process: a child of the daemon that runs `recipes.run`."""
    with suppress(OSError):
        for child in Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split():
            if b"recipes.run" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    return None


def killed(home: Home, kills: int, notes: int) -> tuple[list[dict[str, Any]], int]:
    """Notes and kills at random; the jobs as they ended, and how many kills hit."""
    chance = random.Random(os.environ.get("REEF_TEST_SEED", str(time.time_ns())))
    (home.root / "my_recipe.py").write_text(GOOD)
    with running_provider() as provider:
        provider.reply = obeying
        text, environment = config(provider, 0.1, "auto"), {"REEF_TEST_KEY": "k"}
        daemon = start(home, text, environment=environment)
        tasks(daemon)
        hits, said = 0, 0
        while hits < kills or said < notes:
            if said < notes:
                note(daemon, f"rule number {said}")
                said += 1
            time.sleep(chance.random() * 1.2)
            job = pid_of_job(daemon.process.pid)
            if job is not None and chance.random() < 0.6:
                with suppress(ProcessLookupError):
                    os.kill(job, signal.SIGKILL)
                    hits += 1
            elif chance.random() < 0.5 and hits < kills:
                daemon.kill()
                daemon.stop()  # its connections
                hits += 1
                if job is not None:
                    until(lambda pid=job: not _lives(pid), "the job dies with its daemon")
                daemon = start(home, text, environment=environment)
        try:
            last = note(daemon, "the last rule")
            until(lambda: any(last in path.read_text() for path in home.jobs.glob("*/batch.json")), "it is learned")
            return over(daemon, 1, 120), hits
        finally:
            daemon.stop()


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def check(home: Home, jobs: list[dict[str, Any]]) -> None:
    """Every job is over for a reason, nothing was learned from twice, and the chain is whole."""
    assert {job["state"] for job in jobs} <= {"done", "failed"}
    for job in jobs:
        if job["state"] == "failed":
            assert "without getting any further" in job["error"], job
    used: list[str] = []
    for job in jobs:
        batch = home.jobs / job["id"] / "batch.json"
        if job["state"] == "done" and batch.exists():
            data = json.loads(batch.read_bytes())
            used += [one["receipt"] for one in data["experience"]] + [said["id"] for said in data["notes"]]
    assert len(used) == len(set(used)), "learned from twice"
    store = Store.open(home.database)
    try:
        assert store.verify() == []
        assert store.learning.open_jobs() == []
    finally:
        store.close()
    chain, _ = Releases.open(home).list("default")
    assert len({release.job for release in chain}) == len(chain), "a job is released once"


def test_kills_at_random_points_lose_and_repeat_nothing(reef_home: Home) -> None:
    jobs, hits = killed(reef_home, kills=6, notes=6)
    assert hits >= 6
    check(reef_home, jobs)


@pytest.mark.slow
def test_many_kills_at_random_points_lose_and_repeat_nothing(reef_home: Home) -> None:
    jobs, hits = killed(reef_home, kills=25, notes=20)
    assert hits >= 25
    check(reef_home, jobs)
