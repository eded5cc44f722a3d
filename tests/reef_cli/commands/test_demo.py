"""`reef demo`: real answers, receipts, a report, the trace; and an honest exit code."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from tests.fakes.daemon import running_daemon
from tests.fakes.provider import Fault, Turn
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef, Result


def steps(result: Result) -> dict[str, dict[str, object]]:
    return {step["step"]: step for step in result.json()["steps"]}


def test_it_shows_what_happened_and_what_to_do_next(served: Served, cli: Reef) -> None:
    served.provider.turns = (Turn("A reef is \x1b[31ma wall."),)
    result = cli("demo", "--no-pi")
    assert result.code == 0, result.out + result.err
    assert "A reef is \\x1b[31ma wall." in result.out
    assert "receipt rec_" in result.out
    assert "* good" in result.out
    assert 'eval "$(reef env)"' in result.out.partition("Next")[2]


def test_its_json_is_one_document_with_the_facts(served: Served, cli: Reef) -> None:
    served.provider.turns = (Turn("A reef."),)
    result = cli("demo", "--no-pi", "--json")
    assert result.code == 0
    found = steps(result)
    assert list(found) == ["daemon", "model", "chat", "messages", "report", "trace"]
    assert found["chat"]["answer"] == "A reef."
    assert "skipped" in found["messages"]
    receipt = found["chat"]["receipt"]
    record = served.daemon.get(f"/reef/records/{receipt}")
    assert (record["scenario"], record["reports"][0]["score"]) == ("demo", 1.0)
    assert found["trace"]["request_bytes"] == len(served.daemon.control("GET", f"/reef/records/{receipt}/request")[1])


def test_a_step_that_fails_is_told_and_makes_the_exit_code(served: Served, cli: Reef) -> None:
    served.provider.faults.append(Fault(status=500))
    result = cli("demo", "--no-pi")
    assert result.code == ExitCode.FAILED
    assert "failed: " in result.out
    assert result.out.splitlines()[-1].startswith("Failed: chat, report, trace.")


def test_without_node_it_goes_on(served: Served, cli: Reef, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    served.provider.turns = (Turn("A reef."),)
    result = cli("demo", "--json")
    assert result.code == 0
    assert steps(result)["pi"]["skipped"] == "there is no Node.js with npm on this machine"


@pytest.fixture
def embedded(reef_home: Home, model_path: Path, run_reef: Callable[..., Result]) -> Iterator[Callable[..., Result]]:
    """``reef`` on a home whose daemon answers from the real model."""
    with running_daemon(reef_home):
        assert run_reef(reef_home, "models", "add", str(model_path), "--use").code == 0
        yield lambda *words: run_reef(reef_home, *words)


@pytest.mark.engine
def test_the_real_model_answers_in_both_dialects(embedded: Callable[..., Result]) -> None:
    result = embedded("demo", "--no-pi", "--json")
    assert result.code == 0, result.out
    found = steps(result)
    assert found["chat"]["answer"]
    assert found["messages"]["answer"]
    record = found["trace"]["record"]
    assert isinstance(record, dict)
    assert record["completion_tokens"] > 0
    assert len(record["weights"]) == 64


@pytest.mark.slow
@pytest.mark.engine
def test_real_pi_is_answered_by_the_real_model(embedded: Callable[..., Result]) -> None:
    result = embedded("demo", "--json")
    assert result.code == 0, result.out
    assert steps(result)["pi"]["answer"]
    assert steps(result)["pi"]["turns"] == 1
