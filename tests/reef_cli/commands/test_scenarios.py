"""`reef scenarios …`, on a daemon that serves."""

from daemon.core.errors import ExitCode
from daemon.store.releases import Releases
from tests.fakes.releases import released
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


def test_made_listed_shown_and_changed(cli: Reef) -> None:
    assert cli("scenarios", "add", "work", "--policy", "review").out == "work  base  policy review, training hybrid\n"
    assert cli("scenarios", "add", "work", "--json").json()["policy"] == "review"
    rows = {row["name"]: row for row in cli("scenarios", "list", "--json").json()["items"]}
    assert (rows["work"]["policy"], rows["default"]["policy"]) == ("review", "auto")
    assert "work      base     review  hybrid" in cli("scenarios", "list").out.splitlines()
    assert cli("scenarios", "set", "work", "--policy", "manual", "--json").json()["policy"] == "manual"
    set_ = cli("scenarios", "set", "work", "--policy", "configured", "--training", "manual")
    assert set_.out == "work  base  policy auto, training manual\n"
    shown = cli("scenarios", "show", "work").out.splitlines()
    assert shown[0] == "scenario     work"
    assert "training     manual" in shown
    assert cli("scenarios", "show", "work", "--json").json()["releases"] == []


def test_nothing_to_change(cli: Reef) -> None:
    result = cli("scenarios", "set", "default", "--json")
    assert (result.code, result.error()["kind"]) == (ExitCode.USAGE, "usage")


def test_removing_asks_first_and_says_where_its_releases_are(served: Served, cli: Reef) -> None:
    released(Releases.open(served.home), "job_s1", scenario="old")
    served.ask("hi", scenario="old")
    asked = cli("scenarios", "remove", "old")
    assert (asked.code, "add --yes" in asked.err) == (ExitCode.USAGE, True)
    told = cli("scenarios", "remove", "old", "--yes").out.splitlines()
    assert told[0] == "removed  old"
    assert told[1].startswith(f"its releases stay: git --git-dir {served.home.releases} log refs/reef-archive/old/")
    assert told[2] == "its records stay: reef traces list scenario:old"
    assert "old" not in cli("scenarios", "list").out
    assert cli("scenarios", "remove", "old", "--yes").code == ExitCode.NOT_FOUND
    assert cli("scenarios", "remove", "default", "--yes").code == ExitCode.STALE
