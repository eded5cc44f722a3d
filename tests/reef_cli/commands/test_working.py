"""`reef harness edit · status · keep · discard`, on a real daemon."""

import shutil
from pathlib import Path

import pytest

from daemon.core.errors import ExitCode
from tests.fakes import chain
from tests.fakes.daemon import until
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


def folder(cli: Reef, scenario: str) -> Path:
    return Path(cli("harness", "edit", "--scenario", scenario).out.strip())


def test_from_a_folder_to_a_release(served: Served, cli: Reef) -> None:
    assert cli("harness", "status").err == "no working copy yet: reef harness edit\n"
    chain.publish(served.home, "job_w1", scenario="w")
    root = folder(cli, "w")
    assert root == served.home.harness / "w"
    assert folder(cli, "w") == root
    (root / "rules.md").write_text("Mine.\n")
    status = cli("harness", "status", "--scenario", "w")
    lines = status.out.splitlines()
    assert (status.code, lines[0]) == (ExitCode.OK, f"w  {root}")
    assert "changed   rules.md" in lines
    proposal = cli("harness", "status", "--scenario", "w", "--json").json()["items"][0]["proposal"]
    assert lines[-2:] == [
        f"next      reef releases diff {proposal} --scenario w",
        f"          then: reef releases approve {proposal} --scenario w",
    ]
    assert "+Mine." in cli("releases", "diff", proposal, "--scenario", "w").out
    shown = cli("releases", "show", proposal, "--scenario", "w").out
    assert f"to release it: reef releases approve {proposal} --scenario w" in shown
    assert cli("releases", "approve", proposal, "--scenario", "w").code == ExitCode.OK
    after = cli("harness", "status", "--scenario", "w").out.splitlines()
    assert after[1].startswith("made from r2-")
    assert len(after) == 2


def test_a_folder_that_a_person_removed_is_no_working_copy_any_more(served: Served, cli: Reef) -> None:
    chain.publish(served.home, "job_g1", scenario="g")
    root = folder(cli, "g")
    shutil.rmtree(root)
    gone = cli("harness", "discard", "--scenario", "g")
    assert gone.code == ExitCode.NOT_FOUND
    assert "'g' has no working copy\n  hint: reef harness edit --scenario g" in gone.err
    assert f"g  {root}" not in cli("harness", "status").out
    assert folder(cli, "g") == root
    assert (root / "rules.md").is_file()
    assert cli("harness", "status", "--scenario", "g", "--json").json()["items"][0]["edits"] == []


def test_a_name_that_is_new_is_said_to_be_so(cli: Reef) -> None:
    told = cli("harness", "edit", "--scenario", "wrok").err
    assert told.startswith("no scenario is called 'wrok' yet; which there are: reef scenarios list; this one begins")


def test_a_conflict_and_its_two_ways_out(served: Served, cli: Reef) -> None:
    chain.publish(served.home, "job_x1", scenario="x")
    root = folder(cli, "x")
    (root / "rules.md").write_text("Mine.\n")
    (root / "prompts" / "sum.md").write_text("Mine.\n")
    head = chain.publish(served.home, "job_x2", {"rules.md": "Theirs.\n", "prompts/sum.md": "Theirs.\n"}, scenario="x")
    status = cli("harness", "status", "--scenario", "x")
    assert status.code == ExitCode.FAILED
    assert f"conflict  rules.md: you changed it, and so did {head.id}; yours lies there" in status.out
    assert "then: reef harness keep rules.md --scenario x, or: reef harness discard rules.md --scenario x" in status.out
    assert "conflict  prompts/sum.md" in cli("harness", "keep", "rules.md", "--scenario", "x").out
    asked = cli("harness", "discard", str(root / "prompts" / "sum.md"), "--scenario", "x")
    assert (asked.code, "add --yes" in asked.err) == (ExitCode.USAGE, True)
    done = cli("harness", "discard", str(root / "prompts" / "sum.md"), "--yes", "--scenario", "x", "--json").json()
    assert ([edit["path"] for edit in done["edits"]], done["conflicts"]) == (["rules.md"], {})
    assert (root / "prompts" / "sum.md").read_text() == "Theirs.\n"
    assert cli("harness", "discard", "/etc/passwd", "--yes", "--scenario", "x").code == ExitCode.FAILED
    assert cli("harness", "discard", "--yes", "--scenario", "nobody").code == ExitCode.NOT_FOUND


def test_what_is_wrong_is_shown_and_cannot_act_on_the_terminal(served: Served, cli: Reef) -> None:
    root = folder(cli, "y")
    (root / "rules.md").write_bytes(b"caf\xe9\n")
    (root / "odd\x1b[2J.md").write_text("x\n")
    status = cli("harness", "status", "--scenario", "y")
    assert status.code == ExitCode.FAILED
    assert "wrong     rules.md: byte 3 is not UTF-8 text" in status.out
    assert "passed    odd\\x1b[2J.md: a harness has no such file" in status.out
    until(lambda: str(root) in cli("status").out, "the note in `reef status`")


def test_an_empty_one_says_how_to_begin(cli: Reef) -> None:
    assert "write rules.md there" in cli("harness", "edit", "--scenario", "empty").err


def test_opened_in_the_persons_editor(served: Served, cli: Reef, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "sh -c 'echo Mine. > \"$0/rules.md\"'")
    cli("harness", "edit", "--open", "--scenario", "z")
    assert (served.home.harness / "z" / "rules.md").read_text() == "Mine.\n"
