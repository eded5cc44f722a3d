"""`reef recipes · jobs · evolve · edit` against a real daemon, a person's own recipe and a scripted provider."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from reef_cli.commands.evolve import _in_editor
from reef_cli.commands.recipes import _setting
from reef_cli.waiting import ended, progress, refused
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.provider import Turn, running_provider
from tests.fakes.recipes import GOOD, hostile
from tests.reef_cli.conftest import Reef, Result

COVERS = ("reef_cli/commands/evolve.py", "reef_cli/commands/recipes.py", "reef_cli/waiting.py")


@pytest.fixture(scope="module")
def daemon(module_home: Home) -> Iterator[RunningDaemon]:
    (module_home.root / "mine.py").write_text(GOOD)
    hostile(module_home.root, "fails", "print('about to fail')\nraise RuntimeError('no luck\\u202e today')")
    hostile(module_home.root, "waits", "time.sleep(600)")
    with running_provider((Turn("First line.\nSecond line."),)) as provider:
        config = provider.config(key="env:REEF_TEST_KEY")
        with running_daemon(module_home, config, environment={"REEF_TEST_KEY": "k"}) as running:
            yield running


@pytest.fixture
def cli(run_reef: Callable[..., Result], daemon: RunningDaemon) -> Reef:
    return lambda *words: run_reef(daemon.home, *words)


def say(daemon: RunningDaemon, text: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    status, headers, raw = daemon.post("/v1/chat/completions", body)
    assert status == 200, raw
    return headers["x-reef-agent-record-id"]


def test_recipes_are_listed(cli: Reef) -> None:
    result = cli("recipes", "list")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "playbook  changes harness; learns from note, instruction, mark"
    assert any(line.startswith("  batch_size=1 max_staleness=- ") for line in lines)
    assert max(map(len, lines)) <= 80
    assert {item["name"] for item in cli("recipes", "list", "--json").json()["items"]} >= {"playbook", "sft"}


def test_a_run_without_anything_to_learn_ends_at_once(cli: Reef) -> None:
    result = cli("recipes", "run", "mine:MyRecipe", "--scenario", "empty", "--set", "at_most=2", "--wait")
    assert (result.code, result.out) == (0, "nothing  not enough to learn from yet\n")
    assert "job_" in result.err
    assert "reef note" in result.err


def test_a_run_in_the_background_says_how_to_watch_it(cli: Reef) -> None:
    result = cli("recipes", "run", "mine:MyRecipe", "--scenario", "empty")
    state, job, recipe = result.out.split()
    assert (state, recipe) == ("queued", "mine:MyRecipe")
    assert f"reef jobs show -f {job}" in result.err
    shown = cli("jobs", "show", "-f", job[:-1])
    assert shown.code == 0
    assert "nothing" in shown.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("mine:MyRecipe", "--set", "at_mots=2"), "unknown key 'at_mots'"),
        (("mine:MyRecipe", "--set", "nonsense"), "is not key=value"),
        (("nobody",), "no recipe is called 'nobody'"),
    ],
)
def test_a_run_that_cannot_be_is_refused(cli: Reef, words: tuple[str, ...], message: str) -> None:
    result = cli("recipes", "run", *words, "--json")
    assert result.code != 0
    assert message in result.error()["message"]


def test_a_failed_job_says_so_with_its_log(cli: Reef) -> None:
    result = cli("recipes", "run", "fails:Hostile", "--wait")
    assert result.code == ExitCode.FAILED
    assert "the recipe raised RuntimeError: no luck" in result.err
    assert "\u202e" not in result.err
    job = result.err.split()[0]
    shown = cli("jobs", "show", job)
    assert shown.code == 0
    assert "| about to fail" in shown.out
    assert cli("jobs", "show", job, "--json").json()["state"] == "failed"
    assert cli("jobs", "show", "--json").json()["id"] == cli("jobs", "list", "--json").json()["items"][0]["id"]
    assert cli("jobs", "show", "-f", job, "--json").code == ExitCode.FAILED


def test_a_job_is_cancelled_by_the_beginning_of_its_name(cli: Reef, daemon: RunningDaemon) -> None:
    job = cli("recipes", "run", "waits:Hostile", "--json").json()["id"]
    until(lambda: daemon.get(f"/reef/jobs/{job}")["state"] == "running", "the job runs")
    listed = cli("jobs", "list").out.splitlines()
    assert job.startswith(listed[1].split()[0])
    assert max(map(len, listed)) <= 80
    assert cli("jobs", "cancel", job[:-1]).out == f"cancelled  {job}\n"
    again = cli("jobs", "cancel", job, "--json")
    assert again.error()["kind"] == "conflict"
    rows = cli("jobs", "list", "--json").json()["items"]
    assert next(row for row in rows if row["id"] == job)["state"] == "cancelled"


def test_lists_go_on_page_by_page(cli: Reef) -> None:
    for _ in range(2):
        cli("recipes", "run", "mine:MyRecipe", "--scenario", "paged", "--wait")
    first = cli("jobs", "list", "-n", "1", "--scenario", "paged")
    assert "more: reef jobs list -n 1 --before" in first.err
    assert cli("jobs", "list", "--scenario", "nobody").err.startswith("no job yet")


def test_an_unknown_job_is_not_found(cli: Reef) -> None:
    result = cli("jobs", "show", "job_zz", "--json")
    assert result.code == ExitCode.NOT_FOUND
    assert result.error()["hint"] == "reef jobs list"


def test_an_instruction_is_kept_and_starts_a_job(cli: Reef, daemon: RunningDaemon) -> None:
    told = cli("evolve", "be brief", "--recipe", "waits:Hostile", "--scenario", "evolves", "--json").json()
    assert told["instruction"].startswith("ins_")
    assert (told["job"]["recipe"], told["job"]["scenario"]) == ("waits:Hostile", "evolves")
    daemon.control("POST", f"/reef/jobs/{told['job']['id']}/cancel", {})


def test_a_scenario_that_nothing_was_in_is_said_to_be_new(cli: Reef, daemon: RunningDaemon) -> None:
    words = ("evolve", "be brief", "--recipe", "waits:Hostile", "--scenario", "mistyped", "--json")
    for said in ("new scenario: 'mistyped' had no session, job, task or release\n", ""):
        told = cli(*words)
        assert (told.code, told.err) == (0, said)
        daemon.control("POST", f"/reef/jobs/{told.json()['job']['id']}/cancel", {})


def test_an_edit_is_on_record(cli: Reef, daemon: RunningDaemon) -> None:
    receipt = say(daemon, "edit me")
    result = cli("edit", "--text", "One line.")
    assert result.out == f"edited  {receipt}  One line.\n"
    (report,) = daemon.get(f"/reef/records/{receipt}")["reports"]
    assert report["metadata"] == {"edited": "One line."}


@pytest.mark.parametrize("text", ["First line.\nSecond line.\n", "", "  \n"])
def test_an_answer_left_as_it_is_sends_nothing(cli: Reef, daemon: RunningDaemon, text: str) -> None:
    receipt = say(daemon, f"leave me {text!r}")
    result = cli("edit", receipt, "--text", text)
    assert (result.code, result.out) == (0, "")
    assert "nothing sent" in result.err
    assert daemon.get(f"/reef/records/{receipt}")["reports"] == []


def test_without_a_terminal_an_edit_needs_its_text(cli: Reef, daemon: RunningDaemon) -> None:
    receipt = say(daemon, "no terminal")
    result = cli("edit", receipt, "--json")
    assert result.code == ExitCode.USAGE
    assert "--text" in result.error()["hint"]


def test_the_editor_gets_the_answer_and_gives_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\n[ "$1" = --wait ] && sed -i "s/Second/Better/" "$2"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    primary, secondary = os.openpty()
    try:
        with open(secondary, closefd=False) as terminal:
            monkeypatch.setattr("sys.stdin", terminal)
            monkeypatch.setenv("VISUAL", f"{script} --wait")
            assert _in_editor("First.\nSecond line.") == "First.\nBetter line.\n"
            monkeypatch.setenv("VISUAL", "/no/such/editor")
            with pytest.raises(Exception, match="cannot be started"):
                _in_editor("x")
            monkeypatch.setenv("VISUAL", "false")
            with pytest.raises(Exception, match="ended with exit code 1: nothing was sent"):
                _in_editor("x")
    finally:
        os.close(primary)
        os.close(secondary)


def row(**changes: Any) -> dict[str, Any]:
    return {
        "id": "job_a", "recipe": "mine", "scenario": "odd", "state": "done",
        "outcome": "released", "release_id": "r1-ab",
        "message": "5 to 0", "error": None, "progress": None, **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"outcome": "nothing"}, 0),
        ({"outcome": "pending"}, 0),
        ({"outcome": "rejected"}, ExitCode.GATE),
        ({"outcome": "inconclusive"}, ExitCode.GATE),
        ({"state": "failed", "error": "x"}, ExitCode.FAILED),
        ({"state": "cancelled"}, ExitCode.FAILED),
    ],
)
def test_the_exit_code_follows_the_outcome(
    changes: dict[str, Any], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    job = row(**changes)
    assert refused(job) == code
    if code == 0:
        assert ended(job) == 0
        told = capsys.readouterr()
        assert job["outcome"] in told.out
        assert ("reef releases show r1-ab --scenario odd" in told.err) == (job["outcome"] == "pending")
    else:
        with pytest.raises(Exception, match=r"5 to 0|failed: x|was cancelled") as caught:
            ended(job)
        assert caught.value.exit_code == code  # type: ignore[attr-defined]


def test_progress_in_a_few_words() -> None:
    at = {"step": "train", "done": 3, "total": 14, "note": "loss 0.5"}
    assert progress(row(progress=at)) == "train 3 of 14, loss 0.5"
    assert progress(row(progress={**at, "total": 0, "note": ""})) == "train 3, 5 to 0"
    assert progress(row()) == "5 to 0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a=1", ("a", 1)), ("a=0.5", ("a", 0.5)), ("a=true", ("a", True)), ("a=x=y", ("a", "x=y")), ("a=", ("a", ""))],
)
def test_settings_are_json_where_they_can_be(text: str, expected: tuple[str, object]) -> None:
    assert _setting(text) == expected
