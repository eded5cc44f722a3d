"""Which release put a line there: through edits, rollbacks, and counters that move."""

from pathlib import Path

import pytest

from daemon.core import playbook
from daemon.core.errors import NotFound, UsageError
from daemon.core.playbook import Rule
from daemon.store.releases import Releases
from tests.daemon.store.releases.conftest import Git
from tests.fakes.releases import ACCEPTED, candidate, released, write_weights


def rules(releases: Releases, job: str, text: str, path: str = "rules.md") -> int:
    parent = releases.standing("default").id
    return released(releases, job, parent, harness={path: text}).number


def blamed(releases: Releases, path: str = "rules.md", id: str | None = None) -> list[tuple[str, int]]:
    found = releases.blame("default", id or releases.standing("default").id, path)
    return [(text, release.number) for text, release in found]


def test_each_line_has_the_release_that_put_it_there(releases: Releases) -> None:
    rules(releases, "job_1", "one\ntwo\n")
    rules(releases, "job_2", "one\nnew\ntwo\n")
    assert rules(releases, "job_3", "one\nnew\ntwo changed\n") == 3
    assert blamed(releases) == [("one", 1), ("new", 2), ("two changed", 3)]
    assert blamed(releases, "harness/rules.md", "r2") == [("one", 1), ("new", 2), ("two", 1)]
    waits = releases.propose(candidate("job_4", releases.standing("default").id, harness={"rules.md": "x\n"}), ACCEPTED)
    assert blamed(releases, id=waits.id) == [("x", 0)]


def test_a_rollback_put_nothing_there(releases: Releases) -> None:
    rules(releases, "job_1", "one\ntwo\n")
    rules(releases, "job_2", "other\n")
    releases.rollback("default", "r1")
    rules(releases, "job_3", "two\nthree\n")
    releases.rollback("default", "r3")
    assert blamed(releases) == [("one", 1), ("two", 1)]
    rules(releases, "job_4", "zero\none\ntwo\n")
    assert blamed(releases) == [("zero", 6), ("one", 1), ("two", 1)]


def test_a_rule_is_the_same_rule_when_its_counters_move(releases: Releases, git: Git) -> None:
    first, second = Rule("r-00001", "Be short."), Rule("r-00002", "Use uv.")
    rules(releases, "job_1", playbook.dump([first]), playbook.PATH)
    rules(releases, "job_2", playbook.dump([first._replace(helpful=3), second]), playbook.PATH)
    rules(releases, "job_3", playbook.dump([second._replace(harmful=1)]), playbook.PATH)
    releases.rollback("default", "r2")
    rules(releases, "job_4", playbook.dump([first._replace(helpful=9), second._replace(helpful=1)]), playbook.PATH)
    last = Rule("r-00001", "Be short, always.")
    assert [number for text, number in blamed(releases, playbook.PATH) if text.startswith("- ")] == [1, 2]
    rules(releases, "job_5", playbook.dump([last, second]), playbook.PATH)
    assert [number for text, number in blamed(releases, playbook.PATH) if text.startswith("- ")] == [6, 2]
    assert blamed(releases, playbook.PATH)[0] == ("# Playbook", 1)


def test_what_has_no_lines_is_refused(releases: Releases, tmp_path: Path) -> None:
    released(releases, "job_1", weights=write_weights(tmp_path))
    with pytest.raises(NotFound, match=r"has no file 'prompts/x\.md'") as missing:
        releases.blame("default", "r1", "prompts/x.md")
    assert str(missing.value.hint).startswith("it has rules.md, weights/adapter.gguf, ")
    with pytest.raises(NotFound):
        releases.blame("default", "r9", "rules.md")
    with pytest.raises(NotFound):
        releases.blame("default", "r1", "--contents=/etc/passwd")
    with pytest.raises(UsageError, match="no lines"):
        releases.blame("default", "r1", "weights/adapter.gguf")
