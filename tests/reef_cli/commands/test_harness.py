"""`reef harness …` on a home where a stand-in for Pi is installed. Real installs are in tests/e2e/test_pi.py."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.session import Place
from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from tests.fakes import agents, chain
from tests.fakes.daemon import running_daemon
from tests.reef_cli.conftest import Reef


@pytest.fixture
def home(reef_home: Home) -> Iterator[Home]:
    agents.install(reef_home, upgrade="pinned")
    with running_daemon(reef_home):
        yield reef_home


def listed(reef: Reef, name: str = "pi") -> dict[str, Any]:
    rows: list[dict[str, Any]] = reef("harness", "list", "--json").json()["items"]
    return next(row for row in rows if row["adapter"] == name)


def test_nothing_is_installed(reef: Reef) -> None:
    row = listed(reef)
    assert (row["version"], row["command"]) == ("1.6.0", None)
    told = reef("harness", "list")
    assert "\npi " in told.out
    assert told.err.startswith("not installed yet: reef harness install --adapter ")
    for verb in ("uninstall", "update"):
        assert reef("harness", verb).code == ExitCode.NOT_FOUND


def test_a_part_of_an_install_is_told(reef_home: Home, reef: Reef) -> None:
    agents.install(reef_home)
    (reef_home.agents / "pi" / "receipt").unlink()
    (reef_home.agents / "pi" / ".receipt.new").touch()
    told = reef("harness", "uninstall")
    assert told.code == ExitCode.NOT_FOUND
    assert "pi is not installed, at most a part of it" in told.err
    assert "hint: reef harness install --adapter pi makes it whole" in told.err


def test_pinned_until_updated(home: Home, reef: Reef) -> None:
    chain.publish(home)
    agents.run(home)
    second = chain.publish(home, "job_2", {"rules.md": "Two.\n"}, reason="a second rule")
    assert agents.run(home).told["reef"]["release"]["number"] == 1
    assert reef("harness", "update").out == "release r2 · a second rule · accepted 9\u20130\n"
    again = reef("harness", "update", "--json").json()
    assert (again["changed"], again["release_id"], again["scenario"]) == (False, second.id, "default")
    seen = agents.run(home)
    assert seen.told["reef"]["release"]["number"] == 2
    row = listed(reef)
    assert (row["release"], row["upgrade"], row["running"]) == (second.id, "pinned", 0)
    assert row["command"] == agents.command(home)
    assert reef("harness", "list").err.startswith(f"to run it: {row['command']}\n")


def test_what_the_agent_has_no_place_for_is_said_by_its_first_start_and_an_update(home: Home, reef: Reef) -> None:
    place, servers = Place(home.agents / "pi"), {"docs": {"command": "docs", "args": []}}
    chain.approved(home, {"mcp.json": json.dumps({"mcpServers": servers})})
    seen = agents.run(home)
    assert (seen.told["reef"]["mcp"], seen.err) == (servers, "")
    chosen = json.loads(place.install.read_bytes())
    place.install.write_text(json.dumps({**chosen, "version": "0.74.2"}))
    place.active.unlink()
    said = "Pi does not take this of release r1: mcp.json"
    seen = agents.run(home)
    assert ("mcp" in seen.told["reef"], seen.err) == (False, f"Reef: {said}\n")
    assert agents.run(home).err == ""
    assert reef("harness", "update").err == f"{said}\n"
    assert reef("harness", "update", "--json").json()["left_out"] == said


def test_uninstalling_keeps_what_is_the_persons(home: Home, reef: Reef) -> None:
    agents.run(home)
    place = Place(home.agents / "pi")
    wrapper = home.commands / "reef-pi"
    wrapper.write_text("# mine\n")
    result = reef("harness", "uninstall")
    assert result.code == 0
    assert result.out.splitlines() == [
        "pi is uninstalled",
        f"kept, it is yours: {wrapper}",
        f"kept, it is yours: {place.user}",
    ]
    assert [path.name for path in place.root.iterdir()] == ["user"]


def test_the_only_agent_that_is_installed_is_meant_where_none_is_named(reef_home: Home, reef: Reef) -> None:
    assert "no agent is installed\n  hint: reef harness list" in reef("harness", "uninstall").err
    assert "emacs is not installed\n  hint: reef harness list" in reef("harness", "update", "--adapter", "emacs").err
    agents.install(reef_home)
    (reef_home.agents / "codex").mkdir()
    (reef_home.agents / "codex" / "receipt").touch()
    for verb in ("uninstall", "update"):
        several = reef("harness", verb)
        assert several.code == ExitCode.USAGE
        assert "several agents are installed\n  hint: --adapter codex|pi" in several.err
    (reef_home.agents / "codex" / "receipt").unlink()
    assert reef("harness", "uninstall").out.startswith("pi is uninstalled\n")


def test_what_an_uninstall_kept_can_be_purged(home: Home, reef: Reef) -> None:
    _edit_rules(home)
    reef("harness", "uninstall")
    assert reef("harness", "uninstall", "--adapter", "pi", "--purge").out == "pi is uninstalled\n"
    assert not (home.agents / "pi").exists()


def _edit_rules(home: Home) -> Place:
    """Of a release, where the agent read it."""
    chain.publish(home)
    agents.run(home)
    place = Place(home.agents / "pi")
    (rules,) = place.shelf.glob("r1-*/AGENTS.md")
    rules.chmod(0o600)
    rules.write_text("Mine.\n")
    return place


def test_uninstalling_keeps_a_rule_that_a_person_changed_where_the_agent_read_it(home: Home, reef: Reef) -> None:
    place = _edit_rules(home)
    kept = reef("harness", "uninstall", "--json").json()["kept"]
    assert kept == [str(place.user), str(place.edited)]
    assert [path.read_text() for path in place.edited.rglob("AGENTS.md")] == ["Mine.\n"]


def test_what_a_person_changed_where_the_agent_read_it_is_shown(home: Home, reef: Reef) -> None:
    assert listed(reef)["edited"] == []
    _edit_rules(home)
    (path,) = listed(reef)["edited"]
    assert (Path(path) / "AGENTS.md").read_text() == "Mine.\n"
    for verb in ("list", "status"):
        assert f"changed by hand of pi's files, and read by no new run: {path}\n" in reef("harness", verb).err
    assert reef("harness", "status", "--json").json()["edited"] == {"pi": [path]}
    agents.run(home)  # which keeps it
    (kept,) = listed(reef)["edited"]
    assert Path(kept).is_relative_to(Place(home.agents / "pi").edited)


def test_purging_leaves_nothing(home: Home, reef: Reef) -> None:
    _edit_rules(home)
    result = reef("harness", "uninstall", "--purge", "--json")
    assert result.json() == {"adapter": "pi", "kept": []}
    assert not (home.agents / "pi").exists()
    assert not home.commands.exists()
    assert home.agents.is_dir()


def test_on_the_persons_configuration_nothing_is_left(home: Home, reef: Reef) -> None:
    agents.install(home, mode="overlay")
    agents.run(home)
    assert reef("harness", "uninstall", "--json").json() == {"adapter": "pi", "kept": []}
    assert not (home.agents / "pi").exists()


def test_not_while_it_runs(home: Home, reef: Reef) -> None:
    words = [agents.command(home), "--wait"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        result = reef("harness", "uninstall")
        assert result.code == ExitCode.STALE
        assert "1 run of pi has not ended yet" in result.err
        assert listed(reef)["running"] == 1
        running.communicate("")
    assert reef("harness", "uninstall").code == 0


def test_without_node_it_says_what_to_do(reef: Reef, monkeypatch: pytest.MonkeyPatch, reef_home: Home) -> None:
    monkeypatch.setenv("PATH", str(reef_home.root))
    result = reef("harness", "install", "--adapter", "pi")
    assert result.code == ExitCode.NOT_FOUND
    assert "needs Node.js with npm" in result.err


def test_an_unknown_adapter(reef: Reef) -> None:
    result = reef("harness", "install", "--adapter", "emacs")
    assert result.code == ExitCode.NOT_FOUND
    assert "no adapter is called 'emacs'" in result.err


def test_a_dry_run_writes_nothing(reef: Reef, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reef_home: Home) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"node": "echo v26.1.0", "npm": "exit 1"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    before = sorted(reef_home.root.rglob("*"))
    told = reef("harness", "install", "--dry-run", "--json").json()
    assert told["packages"] == ["@earendil-works/pi-coding-agent@1.6.0"]
    shown = reef("harness", "install", "--dry-run", "--agent-version", "0.74.2").out
    assert shown.splitlines()[:2] == [
        "pi 0.74.2",
        "downloads  @earendil-works/pi-coding-agent@0.74.2 (195 MB on disk)",
    ]
    assert sorted(reef_home.root.rglob("*")) == before


def test_what_is_on_path_is_used_where_it_asks_reef(
    home: Home, reef: Reef, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else Reef's own is installed, and the person told."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program, version = programs / "pi", '#!/bin/sh\n[ "$1" = --version ] && echo 1.7.0 && exit\n'
    program.write_text(
        f'{version}[ "$REEF_CHECK" ] && export ASKS=1\nexec {sys.executable} {agents.program(home)} "$@"\n'
    )
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    made = reef("harness", "install", "--json")
    assert made.code == 0, made.err
    assert (made.json()["version"], made.json()["runs"]) == ("1.7.0", [str(program)])
    assert f"pi 1.7.0 is there: {program}" in made.err
    assert agents.run(home, environment={"EXIT": "3"}).code == 3
    program.write_text(f"{version}echo I am deaf\n")
    for name, text in {"node": "echo v26.1.0", "npm": "exit 1"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o700)
    made = reef("harness", "install")
    assert made.code == ExitCode.FAILED
    assert "I am deaf" in made.err
    assert f"{program} is not used; Reef installs its own\n" in made.err
    assert "npm failed" in made.err
