"""Jobs in real processes, with recipes that misbehave: each ends with a clear word, and the next one runs."""

import asyncio
import json
import os
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon.core.errors import Conflict
from daemon.core.learning import JobRow, JobState, Outcome
from daemon.core.releases import Candidate, GateResult, Guard, Verdict
from daemon.learning.jobs import Jobs
from daemon.learning.process import MARK, last_lines
from daemon.store.jobs import Claim, NewJob
from recipes.directory import JobDirectory, Result
from tests.daemon.learning.conftest import Bench
from tests.fakes.exchanges import record, transcript, user
from tests.fakes.recipes import hostile

COVERS = ("daemon/learning/attempt.py",)

#: What stays of a job that is over.
KEPT = {"spec.json", "batch.json", "gate.jsonl", "result.json", "log", "lock"}

HOSTILE = {
    "raises": ("raise RuntimeError('no luck today')", "the recipe raised RuntimeError: no luck today"),
    "exits": ("os._exit(0)", "ended with exit code 0 and no result"),
    "exits_badly": ("os.write(2, b'last words\\n'); os._exit(3)", "exit code 3 and no result: last words"),
    "speaks_gibberish": (
        "for fd in channels():\n    try: os.write(fd, b'gibberish\\n')\n    except OSError: pass\ntime.sleep(60)",
        "it sent what is no event: 'gibberish",
    ),
    "floods": (
        "for fd in channels():\n    try:\n        while True: os.write(fd, b'x' * 65536)\n    except OSError: pass",
        "a line of more than 1 MiB",
    ),
    "needs_a_ghost": ("import no_such_package_here", "ModuleNotFoundError"),
    "fills_the_disk": (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
        "return Batch(notes=(Feedback('rep_x', 1.0, 'y' * 999, None),))",
        "File too large",
    ),
}


def processes_of(group: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def pid_of(jobs: Jobs) -> int:
    run = jobs._current
    process = None if run is None else run.child._process
    return 0 if process is None or process.returncode is not None else process.pid


async def ran(bench: Bench, name: str, body: str, **changes: float) -> JobRow:
    recipe = hostile(bench.home.root, name, body)
    async with bench.running(**changes) as jobs:
        row = await jobs.submit("default", recipe, {})
        return await bench.over(row.id)


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_recipe_fails_with_a_clear_word(bench: Bench, name: str) -> None:
    body, words = HOSTILE[name]
    row = await ran(bench, name, body)
    assert row.state is JobState.FAILED
    assert row.error is not None
    assert words in row.error


async def test_what_a_recipe_prints_goes_to_a_bounded_log(bench: Bench) -> None:
    row = await ran(bench, "prints", "for n in range(200_000): print('line', n)\nprint('the end')")
    assert (row.state, row.outcome) == (JobState.DONE, Outcome.NOTHING)
    log = bench.home.jobs / row.id / "log"
    assert log.stat().st_size <= 1 << 20
    assert log.read_text().splitlines()[-1] == "the end"


async def test_a_child_that_stays_behind_is_ended_with_its_job(bench: Bench) -> None:
    note = bench.home.root / "child"
    body = f"child = subprocess.Popen(['sleep', '600'])\nopen({str(note)!r}, 'w').write(str(child.pid))"
    row = await ran(bench, "forks", body)
    assert row.state is JobState.DONE
    pid = int(note.read_text())
    await bench.until(lambda: not _lives(pid))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_job_that_never_ends_is_stopped_at_its_hour(bench: Bench) -> None:
    row = await ran(bench, "endless", "while True: time.sleep(1)", job_hours=3 / 3600)
    assert row.state is JobState.FAILED
    assert row.error is not None
    assert "had not finished after" in row.error


async def test_cancel_leaves_no_process(bench: Bench) -> None:
    deaf = "import signal\nsignal.signal(signal.SIGTERM, lambda *_: None)"
    body = f"{deaf}\nsubprocess.run(['sleep', '600'])\ntime.sleep(600)"
    recipe = hostile(bench.home.root, "stubborn", body)
    async with bench.running() as jobs:
        row = await jobs.submit("default", recipe, {})
        group = await bench.until(lambda: pid_of(jobs))
        await bench.until(lambda: len(processes_of(group)) == 2)
        over = await jobs.cancel(row.id)
        assert (over.state, processes_of(group)) == (JobState.CANCELLED, [])
        with pytest.raises(Conflict, match="is cancelled"):
            await jobs.cancel(row.id)


async def test_two_jobs_at_once_queue_and_a_queued_one_can_be_cancelled(bench: Bench) -> None:
    go = bench.home.root / "go"
    recipe = hostile(bench.home.root, "slow", f"while not os.path.exists({str(go)!r}): time.sleep(0.02)")
    async with bench.running() as jobs:
        rows = [await jobs.submit("default", recipe, {}) for _ in range(3)]
        assert (await jobs.cancel(rows[1].id)).state is JobState.CANCELLED
        go.touch()
        first, last = await bench.over(rows[0].id), await bench.over(rows[2].id)
    assert first.ended_ns is not None
    assert last.started_ns is not None
    assert last.started_ns >= first.ended_ns
    assert bench.store.learning.job(rows[1].id).attempts == 0


async def test_a_job_that_is_killed_goes_on_until_it_gets_nowhere(bench: Bench) -> None:
    """BUGS B202."""
    row = await ran(bench, "kills_itself", "os.kill(os.getpid(), 9)")
    assert (row.state, row.attempts) == (JobState.FAILED, 3)
    assert row.error is not None
    assert "3 times without getting any further" in row.error
    assert "signal 9" in row.error


async def test_a_job_that_gets_on_may_be_killed_often(bench: Bench) -> None:
    body = """
work = os.path.join(os.getcwd(), 'work')
done = len(os.listdir(work))
open(os.path.join(work, str(done)), 'w').close()
if done < 5: os.kill(os.getpid(), 9)
"""
    row = await ran(bench, "gets_on", body)
    assert (row.state, row.outcome, row.attempts) == (JobState.DONE, Outcome.NOTHING, 6)


async def test_a_daemon_that_stops_leaves_the_job_to_the_next(bench: Bench) -> None:
    body = "time.sleep(600 if not os.path.exists(os.path.join(os.getcwd(), '..', '..', 'go')) else 0)"
    recipe = hostile(bench.home.root, "waits", body)
    async with bench.running() as jobs:
        row = await jobs.submit("default", recipe, {})
        group = await bench.until(lambda: pid_of(jobs))
    assert processes_of(group) == []
    kept = bench.store.learning.job(row.id)
    assert (kept.state, kept.attempts) == (JobState.RUNNING, 1)
    (bench.home.root / "go").touch()
    async with bench.running():
        over = await bench.over(row.id)
    assert (over.state, over.outcome, over.attempts) == (JobState.DONE, Outcome.NOTHING, 2)


async def test_a_daemon_that_is_killed_takes_its_job_along(bench: Bench) -> None:
    """The job's stdin is a pipe of the daemon's: its end is the end."""
    recipe = hostile(bench.home.root, "outlives", "subprocess.run(['sleep', '600'])")
    async with bench.running() as jobs:
        await jobs.submit("default", recipe, {})
        group = await bench.until(lambda: pid_of(jobs))
        await bench.until(lambda: len(processes_of(group)) == 2)
        run = jobs._current
        assert run is not None
        assert run.child._process is not None
        assert run.child._process.stdin is not None
        run.child._process.stdin.close()
        await bench.until(lambda: processes_of(group) == [], 10)


async def test_what_a_killed_daemons_job_left_running_is_ended_before_it_goes_on(bench: Bench) -> None:
    recipe = hostile(bench.home.root, "left", "pass")
    row = await asyncio.wrap_future(bench.store.learning.create(NewJob("job_left", "default", recipe)))
    left = await asyncio.create_subprocess_exec("sleep", "600", env={MARK: row.id}, start_new_session=True)
    async with bench.running():
        assert (await bench.over(row.id)).state is JobState.DONE
    assert await asyncio.wait_for(left.wait(), 60) == -signal.SIGKILL


async def test_a_daemon_killed_before_it_tidied_up_does_so_at_its_next_start(bench: Bench) -> None:
    over = await ran(bench, "tidied", "pass")
    directory = JobDirectory(bench.home.jobs / over.id)
    for folder in (directory.adapter.parent, directory.work):
        folder.mkdir()
        (folder / "large").touch()
    (directory.root / ".result.json.x1y2").touch()
    async with bench.running():
        await bench.until(lambda: {path.name for path in directory.root.iterdir()} <= KEPT)
    assert directory.result() is not None


async def test_a_result_on_disk_is_published_by_whoever_finds_it(bench: Bench) -> None:
    receipt = record(bench.store, transcript([user("x")], "y")).receipt
    gate = GateResult(Verdict.ACCEPT, "better", 0.1, 5, 0, 0, 10.0, 0.03, 5, 0, 5)
    async with bench.running() as jobs:
        recipe = hostile(bench.home.root, "unused", "time.sleep(600)")
        row = await jobs.submit("default", recipe, {})
        await bench.until(lambda: pid_of(jobs))
    await asyncio.wrap_future(bench.store.learning.claim(row.id, Claim(records=(receipt,))))
    forged = Candidate(
        "other", "r9-x", "why", "other", "job_other", harness={"playbook.md": "x"}, records=("rec_forged",)
    )
    jobs.directory(row.id).write_result(Result(forged, gate))
    async with bench.running():
        over = await bench.over(row.id)
    assert (over.state, over.outcome, over.release_id) == (JobState.DONE, Outcome.RELEASED, "r1-0000000a")
    (candidate,) = bench.published.candidates
    assert (candidate.scenario, candidate.job, candidate.parent) == ("default", row.id, "base"), "the daemon's to say"
    assert candidate.records == (receipt,)


@pytest.mark.parametrize(
    ("verdict", "policy", "outcome"),
    [
        (Verdict.ACCEPT, "auto", Outcome.RELEASED),
        (Verdict.ACCEPT, "review", Outcome.PENDING),
        (Verdict.REJECT, "auto", Outcome.REJECTED),
        (Verdict.INCONCLUSIVE, "auto", Outcome.INCONCLUSIVE),
    ],
)
async def test_the_outcome_follows_the_verdict_and_the_policy(
    bench: Bench, verdict: Verdict, policy: str, outcome: Outcome
) -> None:
    gate = GateResult(verdict, "because", 0.1, 5, 0, 0, 10.5, 0.03, 5, 0, 0)
    result = Result(Candidate("default", "base", "why", "x", "x", harness={"a": "b"}), gate)
    written = msgspec.json.encode(result).decode()
    path = "os.path.join(os.getcwd(), 'result.json')"
    recipe = hostile(bench.home.root, "judged", f"open({path}, 'w').write({written!r})\nos._exit(0)")
    async with bench.running(policy=policy) as jobs:
        over = await bench.over((await jobs.submit("default", recipe, {})).id)
    assert (over.outcome, over.message) == (outcome, "because")


async def test_every_candidate_that_was_compared_counts_as_a_try(bench: Bench) -> None:
    """Whatever became of it, and for its scenario alone; a job that compared nothing is none."""
    pair = "open(os.path.join(os.getcwd(), 'gate.jsonl'), 'w').close()"
    compares = hostile(bench.home.root, "compares", pair)
    compares_and_fails = hostile(bench.home.root, "compares_and_fails", f"{pair}; raise RuntimeError('no luck')")
    nothing = hostile(bench.home.root, "nothing", "pass")
    async with bench.running(alpha=0.2) as jobs:

        async def alpha(recipe: str, scenario: str = "default") -> float:
            row = await bench.over((await jobs.submit(scenario, recipe, {})).id)
            spec = jobs.directory(row.id).spec()
            assert spec is not None
            return spec.alpha

        assert [await alpha(recipe) for recipe in (nothing, compares, compares_and_fails)] == [0.2, 0.2, 0.2 / 4]
        assert await alpha(nothing) == pytest.approx(0.2 / 9)
        assert await alpha(compares, "other") == 0.2


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("os.mkfifo(path)", "no plain file"),
        ("os.symlink('/dev/zero', path)", "cannot be read"),
        ("os.symlink('spec.json', path)", "cannot be read"),
        ("os.mkdir(path)", "no plain file"),
        ("os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), 1 << 40)", "has more than 64 MiB"),
        ("open(path, 'w').write('[' * 100_000)", "cannot be read"),
        ("open(path, 'w').write('{\"gate\": 1}')", "cannot be read"),
    ],
)
async def test_a_result_that_is_none_fails_its_job_alone(bench: Bench, does: str, words: str) -> None:
    path = "path = os.path.join(os.getcwd(), 'result.json')"
    recipe = hostile(bench.home.root, "no_result", f"{path}\n{does}\nos._exit(0)")
    fine = hostile(bench.home.root, "fine", "pass")
    async with bench.running() as jobs:
        row = await bench.over((await jobs.submit("default", recipe, {})).id, 20)
        assert (row.state, words in str(row.error)) == (JobState.FAILED, True), row.error
        assert (await bench.over((await jobs.submit("default", fine, {})).id, 20)).state is JobState.DONE


async def test_a_job_that_writes_over_its_spec_stays_in_its_scenario(bench: Bench) -> None:
    body = """
path = os.path.join(os.getcwd(), 'spec.json')
if 'theirs' not in open(path).read():
    import json
    spec = json.load(open(path))
    spec.update(scenario='theirs', id='job_theirs')
    json.dump(spec, open(path, 'w'))
    os.kill(os.getpid(), 9)
open(os.path.join(os.getcwd(), 'result.json'), 'w').write(RESULT)
os._exit(0)
"""
    gate = GateResult(Verdict.ACCEPT, "better", 0.1, 5, 0, 0, 10.0, 0.03, 5, 0, 5)
    result = msgspec.json.encode(
        Result(Candidate("theirs", "base", "why", "theirs", "job_theirs", harness={"a": "b"}), gate)
    ).decode()
    row = await ran(bench, "moves", body.replace("RESULT", repr(result)))
    assert row.outcome is Outcome.RELEASED, row.error
    (candidate,) = bench.published.candidates
    assert (candidate.scenario, candidate.recipe, candidate.job) == ("default", row.recipe, row.id)


@pytest.mark.parametrize("changes", [{"wins": 4}, {"losses": 1}, {"planned": 4}, {"guard": Guard(3, 1, 2, 1, False)}])
async def test_an_acceptance_that_does_not_add_up_is_none(bench: Bench, changes: dict[str, Any]) -> None:
    gate = replace(GateResult(Verdict.ACCEPT, "so I say", 0.9, 5, 0, 0, 99.0, 0.0, 5, 0, 5), **changes)
    result = msgspec.json.encode(Result(Candidate("default", "base", "why", "x", "x", harness={"a": "b"}), gate))
    path = "os.path.join(os.getcwd(), 'result.json')"
    row = await ran(bench, "forges", f"open({path}, 'wb').write({result!r})\nos._exit(0)")
    assert (row.state, bench.published.candidates) == (JobState.FAILED, [])
    assert "are no acceptance at 0.1" in str(row.error)


async def test_a_log_that_became_something_else_stops_nobody(bench: Bench) -> None:
    body = """
log = os.path.join(os.getcwd(), 'log')
if os.path.exists(log): os.unlink(log)
os.mkfifo(log)
for n in range(30): print('x' * 9000, flush=True); time.sleep(0.02)
"""
    row = await ran(bench, "fifo", body)
    assert row.state is JobState.DONE
    assert last_lines(bench.home.jobs / row.id / "log", 5) == []


async def test_what_is_told_is_on_disk_first(bench: Bench) -> None:
    row = await ran(bench, "plain", "pass")
    assert [told.state for told in bench.told if told.id == row.id][-1] is JobState.DONE
    assert bench.told[-1] == row
    assert not (bench.home.jobs / row.id / "work").exists()


async def test_a_second_process_of_a_job_does_not_write_beside_the_first(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = hostile(bench.home.root, "holds", "time.sleep(600)")
    async with bench.running() as jobs:
        row = await jobs.submit("default", recipe, {})
        await bench.until(lambda: (bench.home.jobs / row.id / "work").exists())
        monkeypatch.setattr("recipes.directory._PATIENCE_SECONDS", 0.1)
        with pytest.raises(Conflict, match="another process"), jobs.directory(row.id).held():
            pass
        await jobs.cancel(row.id)
    spec = json.loads((bench.home.jobs / row.id / "spec.json").read_bytes())
    assert spec["recipe"] == recipe


async def test_a_place_that_cannot_be_written_fails_the_job_not_the_queue(bench: Bench) -> None:
    recipe = hostile(bench.home.root, "fine", "pass")
    async with bench.running() as jobs:
        bench.home.jobs.rmdir()
        bench.home.jobs.write_text("a file where a folder should be")
        row = await bench.over((await jobs.submit("default", recipe, {})).id)
        assert row.state is JobState.FAILED
        assert str(bench.home.jobs) in str(row.error)
        bench.home.jobs.unlink()
        bench.home.jobs.mkdir()
        assert (await bench.over((await jobs.submit("default", recipe, {})).id)).state is JobState.DONE


async def test_keys_of_the_person_are_kept_from_jobs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("REEF_PROVIDER_KEY", "sk-secret")
    monkeypatch.setenv("REEF_TOKEN", "sk-secret")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("UV_KEYRING_PROVIDER", "subprocess")
    row = await ran(bench, "looks", "print(sorted(os.environ)); print(os.nice(0))")
    log = (bench.home.jobs / row.id / "log").read_text()
    assert not [name for name in ("OPENAI_API_KEY", "REEF_PROVIDER_KEY", "REEF_TOKEN") if name in log]
    assert "LC_ALL" in log
    assert "UV_KEYRING_PROVIDER" in log
    assert log.splitlines()[-1] == "19"


async def test_jobs_survive_random_kills(bench: Bench) -> None:
    body = """
work = os.path.join(os.getcwd(), 'work')
for n in range(8):
    open(os.path.join(work, str(n)), 'w').close()
    time.sleep(0.05)
"""
    recipe = hostile(bench.home.root, "steps", body)
    async with bench.running() as jobs:
        row = await jobs.submit("default", recipe, {})
        for n in range(3):
            pid = await bench.until(lambda: pid_of(jobs))
            await asyncio.sleep(0.2 * n)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            await bench.until(lambda pid=pid: pid_of(jobs) != pid)
        over = await bench.over(row.id)
    assert over.state.over
