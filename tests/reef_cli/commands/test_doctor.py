"""`reef doctor` as a whole; its checks one by one are in test_checks."""

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from reef_cli import lifecycle
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


def test_a_running_daemon_is_well(served: Served, cli: Reef) -> None:
    result = cli("doctor")
    assert result.code == 0, result.out
    lines = result.out.splitlines()
    assert any(line.startswith(f"ok   daemon      0.1.0, pid {served.daemon.process.pid}") for line in lines)
    assert any(line.startswith(f"ok   port        {served.daemon.port}") for line in lines)
    assert any(line.startswith(f"ok   p           {served.provider.url}") for line in lines)
    assert not any(line.startswith("fail") for line in lines)


def test_a_failure_is_exit_code_1_with_its_fix_and_nothing_is_started(reef: Reef, reef_home: Home) -> None:
    reef_home.root.chmod(0o755)
    result = reef("doctor")
    assert result.code == ExitCode.FAILED
    assert f"fail home        {reef_home.root} can be read by others\n" in result.out
    assert f"                 fix: chmod -R go= {reef_home.root}\n" in result.out
    assert not lifecycle.lives(reef_home)


def test_its_json(served: Served, cli: Reef) -> None:
    told = cli("doctor", "--json").json()
    assert told["ok"] is True
    assert {"name", "state", "detail", "fix"} == set(told["checks"][0])
