"""`reef demo`: the whole loop on the real model, with figures that a person can rely on; and an honest exit code."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import ExitCode, ReefError
from daemon.core.paths import Home
from reef_cli.demo.loop import Loop
from reef_cli.demo.pi import pi
from reef_cli.demo.story import Story
from tests.fakes.daemon import running_daemon
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef, Result

COVERS = ("reef_cli/demo/loop.py",)


def test_a_provider_has_no_weights_to_train_and_the_next_step_is_named(served: Served, cli: Reef) -> None:
    told = cli("demo", "--quick")
    assert told.code == ExitCode.FAILED
    assert "failed: the configuration says that 'p' answers; the demo trains the model inside" in told.out
    assert "hint: REEF_HOME=$(mktemp -d) reef demo" in told.out
    assert told.out.splitlines()[-1] == "Failed: serve. Next: reef doctor"


def test_a_failure_is_a_line_of_json_too(served: Served, cli: Reef) -> None:
    told = cli("demo", "--quick", "--json")
    assert told.code == ExitCode.FAILED
    assert [json.loads(line)["ok"] for line in told.out.splitlines()] == [False]


def test_without_node_pi_is_left_out(
    reef_home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = pi(reef_home, Story(as_json=False), "demo")
    assert facts == {"skipped": "there is no Node.js with npm on this machine"}
    assert capsys.readouterr().out == "   left out: there is no Node.js with npm on this machine\n"


def test_an_answer_that_did_not_come_is_no_wrong_one(reef_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def lines(self, path: str, body: object) -> Iterator[dict[str, Any]]:
            fact = {"task": "tsk_1", "set": "regression", "prompt": "Why?", "passed": True, "answer": "So."}
            error = {"kind": "engine", "message": "its process ended", "hint": "reef logs"}
            yield fact
            yield fact | {"task": "tsk_2", "passed": False, "answer": "", "error": error}

    loop = Loop(reef_home, Story(as_json=True), 0)
    monkeypatch.setattr(loop, "_client", Broken(), raising=False)
    with pytest.raises(ReefError, match=r"'Why\?' got no answer: its process ended"):
        loop._measure("s")


@pytest.mark.slow
@pytest.mark.engine
def test_a_note_becomes_weights_and_a_rule_both_judged_and_pi_works_on_the_release(
    reef_home: Home, model_path: Path, run_reef: Callable[..., Result]
) -> None:
    with running_daemon(reef_home) as daemon:
        assert run_reef(reef_home, "models", "add", str(model_path), "--use").code == 0
        told = run_reef(reef_home, "demo", "--json")
        assert told.code == 0, told.out[-2000:] + told.err
        *lines, result = map(json.loads, told.out.splitlines())
        steps: dict[str, dict[str, Any]] = {line["step"]: line for line in lines}
        chain = daemon.get(f"/reef/releases?scenario={steps['serve']['scenario']}")["items"]
    assert list(steps) == ["serve", "ask", "before", "feedback", "harness", "weights", "after", "rollback", "pi"]
    weights, harness = result["weights"], result["harness"]
    assert (weights["of"], weights["verdict"]) == (40, "accept")
    assert weights["before"] <= 4
    assert weights["after"] >= 36
    assert harness["verdict"] in ("accept", "reject", "inconclusive")
    assert steps["after"]["facts"] >= steps["before"]["facts"] - 2
    assert steps["weights"]["served"][chain[-1]["id"]] >= 3
    assert [release["kind"] for release in chain] == ["rollback", "rollback", "learned"]
    assert steps["pi"]["answer"]
