"""A person edits what an agent reads, where Reef put it: the next start of the agent keeps it and says so."""

import json
from pathlib import Path

from daemon.core.paths import Home
from tests.fakes.daemon import running_daemon
from tests.reef_cli.test_wrapped import Case


def test_what_a_person_changed_of_the_rendered_files_is_kept_and_said_once(reef_home: Home) -> None:
    """In the release, through a session's link to it; in place of the link; and in a file of that session alone."""
    with running_daemon(reef_home) as daemon:
        _edit_and_run_again(Case(reef_home, "work/x", daemon))


def _edit_and_run_again(case: Case) -> None:
    case.publish()
    with case.running() as running:
        assert running.stdout is not None
        directory = Path(json.loads(running.stdout.readline())["directory"])
        shelved = (directory / "AGENTS.md").resolve()
        for path in (shelved.parent, shelved):
            path.chmod(0o700)
        (directory / "AGENTS.md").write_text("My rule.\n")
        (directory / "prompts").unlink()
        (directory / "prompts").mkdir()
        (directory / "prompts" / "mine.md").write_text("Mine.\n")
        (directory / "prompts" / "sum.md").write_text("My words.\n")
        (directory / "models.json").write_text("{}")
        (directory / "the-agents-own.txt").write_text("x")
        running.communicate("")
    seen = case.run()
    assert "Answer briefly." in seen.told["rules"]
    release, session = case.place.edited / shelved.parent.name, case.place.edited / directory.name
    assert seen.err.splitlines() == [
        line
        for path in sorted((release, session))
        for line in (
            f"Reef: what was changed of Pi's files by hand is not used, and kept in {path}",
            f"  hint: reef harness edit --scenario {case.scenario} changes them for every run",
        )
    ]
    assert (release / "AGENTS.md").read_text() == "My rule.\n"
    assert {path.name: path.read_text() for path in session.rglob("*") if path.is_file()} == {
        "sum.md": "My words.\n", "models.json": "{}",
    }  # fmt: skip
    assert case.run().err == ""
