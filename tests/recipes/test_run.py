"""A job step by step, run by hand against a real daemon: its files, its events, and going on after kill -9."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import RecipeError
from daemon.core.paths import Home
from daemon.core.releases import Verdict
from recipes.base import Proposal
from recipes.directory import JobDirectory, Spec
from recipes.run import _changed
from tests.conftest import ROOT
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.provider import Provider, Turn, running_provider
from tests.fakes.recipes import GOOD, hostile


@dataclass
class Workshop:
    """A daemon that takes a job for running, while the tests run the job's process themselves."""

    daemon: RunningDaemon
    provider: Provider
    folder: Path

    def job(self, scenario: str, **config: object) -> JobDirectory:
        """A directory as the daemon would prepare it, for a job that the daemon believes to run."""
        _, row = self.daemon.control("POST", "/reef/jobs", {"recipe": "waits:Hostile", "scenario": scenario})
        until(lambda: self.daemon.get(f"/reef/jobs/{row['id']}")["state"] == "running", "the job runs")
        directory = JobDirectory(self.folder / row["id"])
        directory.write_spec(Spec(row["id"], scenario, "mine:MyRecipe", config))
        return directory

    def over(self, directory: JobDirectory) -> None:
        self.daemon.control("POST", f"/reef/jobs/{directory.root.name}/cancel", {})

    def start(self, directory: JobDirectory) -> subprocess.Popen[str]:
        environment = {**os.environ, "REEF_HOME": str(self.daemon.home.root)}
        environment["PYTHONPATH"] = f"{ROOT}:{self.daemon.home.root}"
        with directory.log.open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "recipes.run", str(directory.root)], cwd=directory.root, env=environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
            )  # fmt: skip

    def run(self, directory: JobDirectory) -> list[dict[str, Any]]:
        """To its end; the events it told."""
        with self.start(directory) as process:
            assert process.stdout is not None
            return [json.loads(line) for line in process.stdout]

    def kill_when(self, directory: JobDirectory, condition: Any) -> None:
        process = self.start(directory)
        try:
            until(condition, "the moment to kill", 30)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def note(self, scenario: str, text: str) -> str:
        body = {"model": "m", "messages": [{"role": "user", "content": f"about: {text}"}]}
        _, headers, _ = self.daemon.post("/v1/chat/completions", body, x_reef_scenario=scenario)
        receipt = headers["x-reef-agent-record-id"]
        report = {"feedback": text, "references": [receipt]}
        assert self.daemon.post("/reef/report", report, x_reef_scenario=scenario)[0] == 200
        return receipt

    def task(self, scenario: str, prompt: str) -> None:
        body = {"prompt": prompt, "check": {"form": "one_sentence"}}
        status, told = self.daemon.control("POST", f"/reef/tasks?scenario={scenario}", body)
        assert status == 200, told


@pytest.fixture(scope="module")
def shop(module_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    (module_home.root / "mine.py").write_text(GOOD)
    hostile(module_home.root, "waits", "time.sleep(600)")
    with running_provider((Turn("One sentence."),)) as provider:
        config = provider.config(key="env:REEF_TEST_KEY")
        with running_daemon(module_home, config, environment={"REEF_TEST_KEY": "k"}) as daemon:
            yield Workshop(daemon, provider, tmp_path_factory.mktemp("jobs"))


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == name]


def test_a_whole_job_from_a_note_to_a_verdict(shop: Workshop) -> None:
    shop.note("whole", "be brief")
    job = shop.job("whole")
    events = shop.run(job)
    assert [event["step"] for event in named(events, "progress")][:2] == ["select", "grow"]
    assert named(events, "candidate")[0]["reason"] == "1 rules from what you said"
    assert events[-1] == {"event": "done", "outcome": "judged"}
    result, candidate = job.result(), job.candidate()
    assert result is not None
    assert result.gate is not None
    assert result.candidate == candidate
    assert result.gate.verdict is Verdict.INCONCLUSIVE, "there are no tasks"
    assert candidate is not None
    assert "be brief" in str(candidate.harness["playbook.md"])
    assert candidate.environment.keys() == {"reef", "python", "machine"}
    assert candidate.config == {"batch_size": 1, "max_staleness": None, "at_most": 3, "seconds": 0.0}
    assert "what a recipe prints goes to its log" in job.log.read_text()
    claimed = shop.daemon.get(f"/reef/jobs/{job.root.name}/stream")["notes"]
    assert [note["id"] for note in claimed] == list(candidate.reports)
    assert shop.run(job)[-1] == {"event": "done", "outcome": "judged"}, "again: nothing more is done"
    shop.over(job)


def test_nothing_to_learn_from_is_an_end_too(shop: Workshop) -> None:
    """BUGS B197."""
    job = shop.job("empty")
    events = shop.run(job)
    assert events[-1] == {"event": "done", "outcome": "nothing"}
    result = job.result()
    assert result is not None
    assert (result.candidate, result.reason) == (None, "not enough to learn from yet")
    shop.over(job)


def test_a_proposal_that_changes_nothing_is_no_candidate(shop: Workshop) -> None:
    shop.note("same", "be brief")
    first = shop.job("same")
    shop.run(first)
    candidate = first.candidate()
    assert candidate is not None
    shop.over(first)
    again = shop.job("same", at_most=0)
    spec = again.spec()
    assert spec is not None
    harness = {"playbook.md": "# Playbook\n"}
    again.write_spec(Spec(spec.id, "same", "mine:MyRecipe", {"at_most": 0}, harness=harness))
    shop.run(again)
    result = again.result()
    assert result is not None
    assert result.candidate is None
    shop.over(again)


def test_a_job_that_was_killed_learns_from_the_same_batch(shop: Workshop) -> None:
    shop.note("killed", "first")
    job = shop.job("killed", seconds=20)
    shop.kill_when(job, lambda: job.batch() is not None and '"grow"' not in job.log.read_text() and claimed(shop, job))
    shop.note("killed", "second")
    spec = job.spec()
    assert spec is not None
    job.write_spec(Spec(spec.id, "killed", spec.recipe, {"seconds": 0}))
    before = job.batch()
    shop.run(job)
    assert job.batch() == before
    candidate = job.candidate()
    assert candidate is not None
    assert "first" in str(candidate.harness["playbook.md"])
    assert "second" not in str(candidate.harness["playbook.md"])
    shop.over(job)


def claimed(shop: Workshop, job: JobDirectory) -> bool:
    """The recipe has begun to grow: so the claim was made."""
    return (job.root / "work").exists() and bool(shop.daemon.get(f"/reef/jobs/{job.root.name}/stream")["notes"])


def test_pairs_that_were_measured_are_not_measured_again(shop: Workshop) -> None:
    shop.note("pairs", "be brief")
    for number in range(12):
        shop.task("pairs", f"pairs question {number}")
    job = shop.job("pairs")
    shop.kill_when(job, lambda: len(job.pairs()) >= 2)
    kept = job.pairs()
    asked = len(shop.provider.requests)
    events = shop.run(job)
    assert job.pairs()[: len(kept)] == kept
    again = [request.json()["messages"][-1]["content"] for request in shop.provider.requests[asked:]]
    assert {pair.prompt for pair in kept}.isdisjoint(again)
    assert {event["task"] for event in named(events, "pair")}.isdisjoint(pair.task for pair in kept)
    shop.over(job)


def test_an_own_task_s_prompt_is_never_offered(shop: Workshop) -> None:
    receipt = shop.note("held", "be brief")
    job = shop.job("held")
    offered = f"/reef/jobs/{job.root.name}/stream?split="
    found = [one for split in ("train", "search") for one in shop.daemon.get(offered + split)["experience"]]
    if found:  # else the session fell to the gate
        assert found[0]["receipt"] == receipt
    shop.task("held", "About:  BE brief")
    assert shop.daemon.get(offered + "train")["experience"] == []
    assert shop.daemon.get(offered + "search")["experience"] == []
    shop.over(job)


def test_a_task_that_came_after_its_prompt_was_claimed_decides_nothing(shop: Workshop) -> None:
    for number in range(5):  # a session in ten falls to the gate
        shop.note("late", f"be brief, {number}")
    job = shop.job("late")
    shop.task("late", "What is rain?")
    shop.kill_when(job, lambda: job.candidate() is not None)
    batch = job.batch()
    assert batch is not None
    shop.task("late", f"  {batch.experience[0].prompt[-1].text.upper()}!")
    for name in ("gate.jsonl", "result.json"):
        (job.root / name).unlink(missing_ok=True)
    events = shop.run(job)
    assert {pair.prompt for pair in job.pairs()} == {"What is rain?"}
    assert "1 of 2 gate tasks are left out" in " ".join(event["text"] for event in named(events, "say"))
    shop.over(job)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../b", "", "a\\b", "a//b", "./a"])
def test_files_outside_the_harness_are_refused(path: str) -> None:
    with pytest.raises(RecipeError, match="no path below harness"):
        _changed(Proposal("why", {path: "x"}), {})


def test_only_what_differs_is_proposed() -> None:
    proposal = Proposal("why", {"a": "1", "b": "2", "c": None})
    assert _changed(proposal, {"a": "1", "b": "1"}) == {"b": "2"}
    assert _changed(proposal, {"c": "x"}) == {"a": "1", "b": "2", "c": None}


def test_without_a_spec_it_says_who_starts_jobs(shop: Workshop, tmp_path: Path) -> None:
    (event,) = shop.run(JobDirectory(tmp_path))
    assert event["event"] == "error"
    assert "the daemon starts jobs" in event["message"]
