"""`reef doctor` as a whole; its checks one by one are in test_checks."""

from adapters.receipt import read
from daemon.core.errors import ExitCode
from daemon.core.paths import Home, private_directory, write_private
from reef_cli import lifecycle
from tests.fakes.daemon import until
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


def test_it_says_which_agents_have_really_asked(served: Served, cli: Reef) -> None:
    """https://github.com/openai/codex/issues/5347: an agent that passes its settings over says nothing of it."""

    def told() -> tuple[str, str]:
        (line,) = [one for one in cli("doctor", "--json").json()["checks"] if one["name"] == "agents"]
        return line["state"], line["detail"]

    assert told()[0] == "ok"  # nobody has been asked to ask yet
    assert told()[1].startswith("no request yet: reef env AGENT says what an agent needs")
    served.ask("from some program")
    until(lambda: told()[0] == "ok", "the request is counted")
    receipt = served.home.agents / "pi" / "receipt"
    private_directory(receipt.parent.parent)
    private_directory(receipt.parent)
    write_private(receipt, b"# reef pi 1.6.0\n# packages \n")
    assert read(served.home.root, "pi") is not None
    assert told() == ("warn", "pi installed, but no request has come in 30 days")
    assert "bin/reef-pi" in cli("doctor").out
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert served.daemon.post("/v1/chat/completions", body, x_reef_adapter="pi")[0] == 200
    until(lambda: told()[0] == "ok", "the request is counted")
    assert "1 of pi" in told()[1]
    receipt.unlink()


def test_its_json(served: Served, cli: Reef) -> None:
    told = cli("doctor", "--json").json()
    assert told["ok"] is True
    assert {"name", "state", "detail", "fix"} == set(told["checks"][0])
