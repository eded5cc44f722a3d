"""Starting at login and its undoing: what is written, the real daemon that comes of it, and that nothing is left."""

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.errors import Conflict, NotFound, ReefError
from daemon.core.paths import Home
from reef_cli import lifecycle, login
from tests.fakes import managers
from tests.reef_cli.conftest import Reef


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with a space and an umlaut in its name, and a session of systemd's stand-in."""
    place = tmp_path / "for mé 100%"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    managers.put(tmp_path / "bin", tmp_path / "state", "systemctl", "loginctl", "launchctl")
    return place


@pytest.fixture
def home(reef_home: Home, person: Path) -> Iterator[Home]:
    reef_home.config.write_text("server: {port: 0}\n")
    yield reef_home
    login.uninstall(reef_home)
    lifecycle.stop_daemon(reef_home)


def unit(person: Path) -> Path:
    (found,) = (person / ".config/systemd/user").glob("*.service")
    return found


def test_a_daemon_comes_of_it_and_all_of_it_goes_again(home: Home, person: Path, reef: Reef, tmp_path: Path) -> None:
    first = reef("start", "--at-login", "--json")
    assert first.code == 0, first.err
    assert "starts at login: " in first.err
    assert "loginctl enable-linger" in first.err
    service = unit(person)
    assert (service.parent / "default.target.wants" / service.name).is_symlink()
    assert first.json()["pid"] == int((tmp_path / "state" / f"{service.name}.pid").read_text()), "the manager's own"
    again = reef("start", "--at-login")
    assert "starts at login already" in again.err
    assert f"pid {first.json()['pid']}" in again.out, "nothing was restarted"
    last = reef("stop", "--at-login")
    assert (last.code, last.out) == (0, "reef stopped\n")
    assert not lifecycle.lives(home)
    assert [path for path in (person / ".config").rglob("*") if not path.is_dir()] == []
    assert not home.login.exists()
    assert "was not set up" in reef("stop", "--at-login").err


def test_a_daemon_that_runs_already_is_handed_over(home: Home, person: Path, reef: Reef) -> None:
    before = reef("start", "--json").json()["pid"]
    after = reef("start", "--at-login", "--json").json()["pid"]
    assert before != after
    assert reef("stop").out == "reef stopped\n"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not here to check the unit")
def test_systemd_itself_has_nothing_to_say_against_the_unit(home: Home, person: Path, tmp_path: Path) -> None:
    path, content = login.Systemd().file(home)
    service = tmp_path / path.name
    service.write_bytes(content)
    words = ["systemd-analyze", "--user", "verify", str(service)]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_restarts_what_crashed_and_not_what_cannot_run(home: Home) -> None:
    text = login.Systemd().file(home)[1].decode()
    assert "Restart=on-failure" in text
    assert "RestartPreventExitStatus=2 6\n" in text
    assert "UMask=0077" in text
    assert "KEY" not in text, "nothing of this shell's but where programs are"


def test_two_homes_have_a_unit_each(home: Home, person: Path) -> None:
    usual = Home(person / ".reef")
    assert login.Systemd().file(usual)[0].name == "reef.service"
    assert login.Systemd().file(home)[0].name != "reef.service"


def test_without_a_session_nothing_is_left_behind(
    home: Home, person: Path, reef: Reef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over ssh without a user manager, in a container."""
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    result = reef("start", "--at-login")
    assert result.code == 1
    assert "Failed to connect to bus" in result.err
    assert list((person / ".config").rglob("*.service")) == []
    assert not home.login.exists()


def test_a_file_that_is_not_ours_is_left_alone(home: Home, person: Path) -> None:
    path, _ = login.Systemd().file(home)
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nExecStart=/bin/true\n")
    with pytest.raises(Conflict, match="not Reef's"):
        login.install(home, login.Systemd())
    assert path.read_text() == "[Service]\nExecStart=/bin/true\n"
    path.unlink()


def test_a_file_that_a_person_changed_stays_and_is_named(home: Home, person: Path) -> None:
    login.install(home, login.Systemd())
    path = unit(person)
    ours = path.read_bytes()
    path.write_bytes(ours + b"# mine\n")
    with pytest.raises(Conflict, match="was changed"):
        login.uninstall(home)
    with pytest.raises(Conflict, match="was changed"):
        login.install(home, login.Systemd())
    assert path.read_bytes() == ours + b"# mine\n"
    path.unlink()
    assert login.uninstall(home), "who removed it by hand is done"


def test_a_new_program_replaces_the_unit_of_the_old_one(
    home: Home, person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert login.install(home, login.Systemd())
    assert not login.install(home, login.Systemd())
    monkeypatch.setattr(login, "DAEMON", ("/opt/new/python", "-m", "daemon.server"))
    assert login.install(home, login.Systemd())
    assert '"/opt/new/python" "-m" "daemon.server"' in unit(person).read_text()


def test_launchd_starts_and_stops_the_same_daemon(home: Home, person: Path, tmp_path: Path) -> None:
    manager = login.Launchd()
    assert login.install(home, manager)
    path, content = manager.file(home)
    assert path.parent == person / "Library/LaunchAgents"
    agent = plistlib.loads(content)
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})
    manager.start(path)
    assert lifecycle.answers_soon(home, 60)
    manager.start(path)  # one that is loaded is replaced
    assert lifecycle.answers_soon(home, 60)
    assert login.uninstall(home)
    assert not lifecycle.lives(home)
    assert not path.exists()


def test_where_nothing_starts_programs_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotFound, match="neither systemd nor launchd"):
        login.here()


def test_a_manager_of_another_system_is_not_asked(monkeypatch: pytest.MonkeyPatch, person: Path) -> None:
    assert isinstance(login.here(), login.Systemd)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert isinstance(login.here(), login.Launchd)


def test_a_receipt_that_cannot_be_read_is_named(home: Home) -> None:
    home.login.write_text('{"manager": "cron", "path": "/etc/passwd", "sha256": ""}')
    with pytest.raises(ReefError, match=r"login\.json"):
        login.uninstall(home)
    home.login.unlink()
