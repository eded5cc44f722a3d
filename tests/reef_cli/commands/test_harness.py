"""`reef harness …` on a home where a stand-in for Pi is installed. Real installs are in tests/e2e/test_pi.py."""

import subprocess
from collections.abc import Iterator

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


def test_nothing_is_installed(reef: Reef) -> None:
    (row,) = reef("harness", "list", "--json").json()["items"]
    assert (row["adapter"], row["version"], row["command"]) == ("pi", "1.6.0", None)
    listed = reef("harness", "list")
    assert listed.out.splitlines()[1].startswith("pi ")
    assert listed.err == "not installed yet: reef harness install --adapter pi\n"
    for verb in ("uninstall", "update"):
        assert reef("harness", verb).code == ExitCode.NOT_FOUND


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
    (row,) = reef("harness", "list", "--json").json()["items"]
    assert (row["release"], row["upgrade"], row["running"]) == (second.id, "pinned", 0)
    assert row["command"] == agents.command(home)
    assert reef("harness", "list").err == f"to run it: {row['command']}\n"


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


def test_purging_leaves_nothing(home: Home, reef: Reef) -> None:
    chain.publish(home)
    agents.run(home)
    result = reef("harness", "uninstall", "--purge", "--json")
    assert result.json() == {"adapter": "pi", "kept": []}
    assert not (home.agents / "pi").exists()
    assert not home.commands.exists()
    assert home.agents.is_dir()


def test_not_while_it_runs(home: Home, reef: Reef) -> None:
    words = [agents.command(home), "--wait"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        result = reef("harness", "uninstall")
        assert result.code == ExitCode.STALE
        assert "1 run of reef-pi has not ended yet" in result.err
        assert reef("harness", "list", "--json").json()["items"][0]["running"] == 1
        running.communicate("")
    assert reef("harness", "uninstall").code == 0


def test_without_node_it_says_what_to_do(reef: Reef, monkeypatch: pytest.MonkeyPatch, reef_home: Home) -> None:
    monkeypatch.setenv("PATH", str(reef_home.root))
    result = reef("harness", "install", "--adapter", "pi")
    assert result.code == ExitCode.NOT_FOUND
    assert "needs Node.js with npm" in result.err


def test_an_unknown_adapter(reef: Reef) -> None:
    assert reef("harness", "install", "--adapter", "emacs").code == ExitCode.USAGE
