"""Starting, finding, replacing and stopping real daemons, and what dead ones leave."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from daemon.core.client import Client
from daemon.core.discovery import DaemonState, read_state, write_state
from daemon.core.errors import ConfigError, Unreachable
from daemon.core.paths import Home
from daemon.core.version import __version__
from reef_cli import lifecycle
from tests.fakes.daemon import REPOSITORY, until
from tests.reef_cli.raw_server import answering


@pytest.fixture
def home(reef_home: Home) -> Iterator[Home]:
    """A home whose daemons take any port, and are gone when the test ends."""
    reef_home.config.write_text("server: {port: 0}\n")
    yield reef_home
    state = read_state(reef_home)
    if state is not None and lifecycle.lives(reef_home):
        os.kill(state.pid, signal.SIGKILL)
        until(lambda: not lifecycle.lives(reef_home), "the daemon's end")


def pid(home: Home) -> int:
    health = lifecycle.probe(home)
    assert health is not None
    return health.pid


def reef(home: Home, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "reef_cli.main", *words],
        cwd=REPOSITORY,
        env={**os.environ, "REEF_HOME": str(home.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def old_daemon(home: Home, version: str, *options: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.old_daemon", version, *options],
        cwd=REPOSITORY,
        env={**os.environ, "REEF_HOME": str(home.root)},
    )
    until(lambda: home.socket.exists() and lifecycle.lives(home), "the old daemon's start")
    return process


def test_a_clone_s_wrapper_starts_one_without_a_word_in_the_environment(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    lifecycle.ensure_daemon(home)
    assert pid(home) > 0


def test_what_a_project_calls_daemon_is_not_taken_for_ours(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "daemon.py").write_text("raise SystemExit('not this one')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    lifecycle.ensure_daemon(home)
    assert pid(home) > 0


def test_it_starts_one_that_answers_and_outlives_the_caller(home: Home) -> None:
    caller = reef(home, "start", "--json")
    out, err = caller.communicate(timeout=60)
    assert caller.returncode == 0, err
    assert f'"pid": {pid(home)}' in out
    assert os.getsid(pid(home)) == pid(home)


def test_it_uses_the_one_that_runs(home: Home) -> None:
    lifecycle.ensure_daemon(home)
    first = pid(home)
    assert lifecycle.ensure_daemon(home).get("/healthz")["pid"] == first


def test_many_callers_at_once_start_one_daemon(home: Home) -> None:
    callers = [reef(home, "start", "--json") for _ in range(4)]
    told = [caller.communicate(timeout=90) for caller in callers]
    assert [caller.returncode for caller in callers] == [0] * 4, told
    assert {f'"pid": {pid(home)}' in out for out, _ in told} == {True}
    assert home.log.read_text().count(" serves ") == 1


def test_who_is_killed_while_starting_one_leaves_no_second_one_behind(home: Home) -> None:
    """The next caller finds the one that was begun, however slowly it starts: a second would outlive `reef stop`."""
    slowly = ("sh", "-c", f"sleep 1; exec {sys.executable} -m daemon.server")
    code = f"from daemon.core.paths import home; from reef_cli import lifecycle as l; l.ensure_daemon(home(), {slowly})"
    caller = subprocess.Popen(
        [sys.executable, "-c", code], cwd=REPOSITORY, env={**os.environ, "REEF_HOME": str(home.root)}
    )
    children = Path(f"/proc/{caller.pid}/task/{caller.pid}/children")
    begun = int(until(children.read_text, "the start of a daemon").split()[0])
    caller.kill()
    caller.wait()
    lifecycle.ensure_daemon(home)
    assert pid(home) == begun


def test_one_that_is_killed_while_it_is_asked_is_not_there(home: Home) -> None:
    home.prepare()
    with answering(home.socket, b""):
        assert lifecycle.probe(home) is None


def test_a_killed_daemon_comes_back_on_the_next_call(home: Home) -> None:
    """B119: https://github.com/lidge-jun/opencodex/pull/2861."""
    lifecycle.ensure_daemon(home)
    first = pid(home)
    os.kill(first, signal.SIGKILL)
    until(lambda: not lifecycle.lives(home), "its end")
    assert home.socket.exists()
    why = lifecycle.down(home)
    assert (why.reason, why.pid) == (f"it was killed (pid {first})", first)
    assert lifecycle.ensure_daemon(home).get("/healthz")["pid"] != first


def test_files_of_a_dead_daemon_are_harmless(home: Home) -> None:
    home.lock.write_text("")
    home.start_lock.write_text("")
    with answering(home.socket, b""):
        pass  # leaves its socket file
    write_state(home, DaemonState(os.getpid(), 1, str(home.socket), __version__, 1, 0))
    assert lifecycle.probe(home) is None
    assert lifecycle.ensure_daemon(home).get("/healthz")["ok"] is True


def test_one_of_another_version_drains_and_is_replaced(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with old_daemon(home, "0.0.9", "--drain", "0.3") as old:
        client = lifecycle.ensure_daemon(home)
        assert old.wait(30) == 0
    assert client.get("/healthz")["version"] == __version__
    assert f"replacing the daemon 0.0.9 (pid {old.pid}) by {__version__}" in capsys.readouterr().err


def test_one_of_another_version_stays_where_the_next_could_not_start(home: Home) -> None:
    with old_daemon(home, "0.0.9") as old:
        home.config.write_text("sever: {}\n")
        with pytest.raises(ConfigError, match="unknown key 'sever'"):
            lifecycle.ensure_daemon(home)
        assert pid(home) == old.pid
        home.config.write_text("server: {port: 0}\n")
        lifecycle.stop_daemon(home)


def test_one_that_hangs_is_named_with_the_way_out(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "PROBE_SECONDS", 0.1)
    with old_daemon(home, __version__, "--silent") as hung:
        try:
            with pytest.raises(Unreachable) as caught:
                lifecycle.ensure_daemon(home)
        finally:
            hung.kill()
    assert f"kill {hung.pid}" in (caught.value.hint or "")


def failing(home: Home, command: Sequence[str]) -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        lifecycle.ensure_daemon(home, command)
    return caught.value


def test_a_start_that_fails_shows_the_end_of_the_log(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.log.write_text("an older line\n")
    code = "import sys; print('the reason', file=sys.stderr); sys.exit(7)"
    error = failing(home, (sys.executable, "-c", code))
    assert error.message == "the daemon did not start: exit code 7"
    assert error.hint == "reef doctor"
    assert capsys.readouterr().err == "  the reason\n"


def test_a_bad_configuration_is_told_by_the_failed_start(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.config.write_text("sever: {}\n")
    error = failing(home, lifecycle.DAEMON)
    assert "exit code 2" in error.message
    assert "unknown key 'sever'" in capsys.readouterr().err


def test_a_taken_port_that_was_asked_for_is_told_with_its_holder(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    """B121: https://github.com/duniter/duniter/issues/919."""
    import socket

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        home.config.write_text(f"server: {{port: {port}}}\n")
        failing(home, lifecycle.DAEMON)
    assert f"port {port} is taken by" in (err := capsys.readouterr().err)
    assert f"(pid {os.getpid()})" in err


def test_stop_waits_for_the_end(home: Home) -> None:
    client = lifecycle.ensure_daemon(home)
    assert lifecycle.stop_daemon(home) is True
    assert not lifecycle.lives(home)
    assert not home.socket.exists()
    assert lifecycle.down(home).reason == "it was stopped"
    with pytest.raises(Unreachable):
        client.get("/healthz")


def test_stop_without_a_daemon_says_so(home: Home) -> None:
    assert lifecycle.stop_daemon(home) is False
    assert lifecycle.down(home).reason == "never started"


def test_nothing_is_made_by_looking(tmp_path_factory: pytest.TempPathFactory) -> None:
    nowhere = Home(tmp_path_factory.mktemp("nowhere") / "reef")
    assert lifecycle.probe(nowhere) is None
    assert not lifecycle.lives(nowhere)
    assert not nowhere.root.exists()


def test_files_are_private(home: Home) -> None:
    lifecycle.ensure_daemon(home)
    for path in (home.log, home.start_lock, home.lock, home.socket, home.state):
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_daemon_answers_on_the_socket_only_its_owner_opens(home: Home) -> None:
    lifecycle.ensure_daemon(home)
    assert Client(home.socket).get("/reef/status")["home"] == str(home.root)
