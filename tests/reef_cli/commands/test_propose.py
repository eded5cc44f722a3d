"""`reef harness propose · seed`, on a real daemon."""

from pathlib import Path

import pytest

from adapters import seeds
from daemon.core.errors import ExitCode
from tests.fakes import chain
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef

SKILL = chain.HARNESS["skills/greet/SKILL.md"]


def put(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_folder_becomes_a_proposal_and_a_release(cli: Reef, tmp_path: Path) -> None:
    put(tmp_path, **chain.HARNESS, **{".git/config": "x", ".rules.md.swp": "x", "extensions/pi/a.ts": "export {}\n"})
    told = cli("harness", "propose", str(tmp_path), "--reason", "the team's", "--scenario", "f", "--yes")
    lines = told.out.splitlines()
    assert lines[0].startswith("proposed  r0-")
    assert lines[0].endswith("the team's")
    assert lines[1] == "it changes what can act by itself: extensions/pi/a.ts", "so --yes does not do"
    id = lines[0].split()[1]
    assert lines[2:] == [
        f"see it: reef releases diff {id} --scenario f",
        f"then: reef releases approve {id} --scenario f",
    ]
    assert "+Answer briefly." in cli("releases", "diff", id, "--scenario", "f").out
    assert cli("releases", "approve", id, "--scenario", "f", "--yes").code == ExitCode.OK


def test_a_route_is_proposed_and_shown(cli: Reef) -> None:
    told = cli("harness", "route", "gpt-5=other", "gpt-4=default", "--scenario", "r")
    id = told.out.split()[1]
    shown = cli("releases", "show", id, "--scenario", "r").out
    assert "routing   gpt-5: other answers" in shown
    assert '+    "gpt-4": "default"' in cli("releases", "diff", id, "--scenario", "r").out
    assert cli("harness", "route", "gpt-5").code == ExitCode.USAGE


def test_a_file_knows_its_place_by_the_end_of_its_path(cli: Reef, tmp_path: Path) -> None:
    put(tmp_path / "notes", **{"skills/greet/SKILL.md": SKILL, "rules.md": "Be brief.\n"})
    files = [str(tmp_path / "notes" / "skills" / "greet" / "SKILL.md"), str(tmp_path / "notes" / "rules.md")]
    told = cli("harness", "propose", *files, "--scenario", "p", "--yes", "--json").json()
    assert (told["state"], sorted(told["files"])) == ("released", ["harness/rules.md", "harness/skills/greet/SKILL.md"])


def test_yes_does_not_go_over_what_is_there(served: Served, cli: Reef, tmp_path: Path) -> None:
    chain.publish(served.home, "job_o1", scenario="o")
    put(tmp_path, **{"rules.md": "Mine.\n", "memory/a.md": "A.\n"})
    told = cli("harness", "propose", str(tmp_path), "--scenario", "o", "--yes")
    assert "it changes what you have: rules.md" in told.out
    assert cli("releases", "list", "--scenario", "o", "--json").json()["items"][0]["number"] == 1
    whole = cli("harness", "propose", str(tmp_path), "--scenario", "o", "--whole", "--json").json()
    assert sorted(whole["files"]) == ["harness/memory/a.md", "harness/rules.md"]


@pytest.mark.parametrize(
    ("name", "what"),
    [("notes.txt", "no place in a harness"), ("missing/rules.md", "cannot read"), ("latin/rules.md", "not UTF-8")],
)
def test_what_cannot_be_proposed_is_named(cli: Reef, tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "latin").mkdir()
    (tmp_path / "latin" / "rules.md").write_bytes(b"caf\xe9")
    told = cli("harness", "propose", str(tmp_path / name), "--json")
    assert told.code == ExitCode.USAGE
    assert what in told.error()["message"]
    assert name in told.error()["message"]


def test_a_folder_with_a_stray_file_or_none_at_all(cli: Reef, tmp_path: Path) -> None:
    assert "no harness file" in cli("harness", "propose", str(tmp_path)).err
    put(tmp_path, **{"rules.md": "x\n", "skills/greet.md": "x\n"})
    told = cli("harness", "propose", str(tmp_path))
    assert (told.code, "skills/greet.md has no place" in told.err) == (ExitCode.USAGE, True)
    (tmp_path / "skills" / "greet.md").unlink()
    other = put(tmp_path / "other", **{"rules.md": "y\n"})
    assert "so is another file" in cli("harness", "propose", str(tmp_path / "rules.md"), str(other)).err


def test_seeds_are_listed_and_taken(cli: Reef) -> None:
    listed = cli("harness", "seed")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == list(seeds.names())
    assert cli("harness", "seed", "--json").json()["items"][0]["files"] == sorted(seeds.files("developer"))
    told = cli("harness", "seed", "developer", "--scenario", "s", "--yes")
    assert told.out.startswith("released  r1-")
    assert cli("releases", "show", "--scenario", "s", "--json").json()["files_text"] == seeds.files("developer")
    again = cli("harness", "seed", "developer", "--scenario", "s", "--json")
    assert (again.code, "nothing in it is different" in again.error()["message"]) == (ExitCode.FAILED, True)
    assert cli("harness", "seed", "brief", "--scenario", "s", "--yes").out.startswith("proposed  r0-")
    assert cli("harness", "seed", "nothing").code == ExitCode.NOT_FOUND
