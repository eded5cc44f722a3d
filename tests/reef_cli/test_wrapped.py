"""``reef-pi`` up to the moment it becomes the agent: which release, what the agent finds, and what a fault changes."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import UnixStreamServer
from typing import Any

import pytest

from adapters import active, agent, delivery, receipt
from adapters.plan import OnDaemonDown, Upgrade
from adapters.session import Place
from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from daemon.core.releases import Release
from daemon.core.version import PROTOCOL, __version__
from daemon.store.releases import Releases
from reef_cli import lifecycle
from reef_cli.wrapped import key_of
from tests.adapters.conftest import tree
from tests.fakes import agents, chain
from tests.fakes.daemon import RunningDaemon, running_daemon, until
from tests.fakes.serving import serving


class Case:
    """A fresh install with a scenario of its own, on a daemon that the module shares."""

    def __init__(self, home: Home, scenario: str, daemon: RunningDaemon | None = None) -> None:
        self.home, self.scenario, self._daemon = home, scenario, daemon
        self.place = Place(home.agents / "pi")
        self.command = agents.command(home)
        self.install()

    @property
    def daemon(self) -> RunningDaemon:
        assert self._daemon is not None
        return self._daemon

    def install(self, upgrade: Upgrade = "auto", on_daemon_down: OnDaemonDown = "fail") -> None:
        agents.install(self.home, scenario=self.scenario, upgrade=upgrade, on_daemon_down=on_daemon_down)

    def run(self, *words: str, **options: Any) -> agents.Seen:
        return agents.run(self.home, *words, **options)

    def publish(self, *words: Any, scenario: str | None = None, **fields: Any) -> Release:
        return chain.publish(self.home, *words, scenario=scenario or self.scenario, **fields)

    def running(self) -> "subprocess.Popen[str]":
        """A run that goes on until its stdin ends."""
        return subprocess.Popen(
            [self.command, "--wait"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def shelf(self) -> list[str]:
        return sorted(path.name for path in self.place.shelf.iterdir())

    def sessions(self) -> int:
        return len(list(self.place.sessions.iterdir()))


@pytest.fixture(scope="module")
def shared(module_home: Home) -> Iterator[RunningDaemon]:
    with running_daemon(module_home) as running:
        yield running


@pytest.fixture
def case(shared: RunningDaemon, request: pytest.FixtureRequest) -> Case:
    for passing in Place(shared.home.agents / "pi").passing():
        if passing.is_dir():
            receipt.erase(passing)
        else:
            passing.unlink(missing_ok=True)
    scenario = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    return Case(shared.home, scenario, shared)


@pytest.fixture
def alone(reef_home: Home) -> Case:
    """Without a daemon."""
    return Case(reef_home, "default")


def test_it_becomes_the_agent(case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "a b $HOME ü"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], cwd=folder, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True)
    seen = case.run("-p", "it's", "--json", "", folder=folder, environment={"EXIT": "42"})
    assert (seen.code, seen.err) == (42, "")
    assert seen.told["arguments"] == ["-p", "it's", "--json", ""]
    provider = seen.told["models"]["providers"]["reef"]
    assert provider["baseUrl"] == f"{case.daemon.url}/v1"
    headers = provider["headers"]
    assert headers["x-reef-cwd"].endswith("/a%20b%20%24HOME%20%C3%BC")
    assert headers["x-reef-commit"] == head.stdout.strip()
    assert headers["x-reef-tag-release"] == "base"
    assert "x-reef-tag-rules" not in headers
    assert "x-reef-session-id" not in headers  # the agent's own names the conversation
    key = provider["apiKey"].removeprefix("!")
    assert (
        subprocess.run(["sh", "-c", key], capture_output=True, text=True, check=True).stdout == case.daemon.agent_token
    )
    assert seen.told["reef"]["release"]["release_id"] == "base"
    environment = seen.told["environment"]
    assert (environment["PI_OFFLINE"], environment["REEF_SCENARIO"]) == ("1", case.scenario)
    assert environment["REEF_RUN"] == headers["x-reef-tag-run"]
    assert environment["REEF_HOME"] == str(case.home.root)


def test_on_the_persons_configuration_all_comes_as_arguments(case: Case) -> None:
    """But not before Pi's own commands."""
    agents.install(case.home, scenario=case.scenario, mode="overlay")
    case.publish()
    seen = case.run("-p", "x")
    directory = seen.told["environment"]["REEF_SESSION_DIRECTORY"]
    assert seen.told["arguments"] == [
        "-e", f"{directory}/extensions/reef.ts", "--append-system-prompt", f"{directory}/RULES.md",
        "--skill", f"{directory}/skills", "--prompt-template", f"{directory}/prompts", "--model", "reef/default",
        "-p", "x",
    ]  # fmt: skip
    assert "PI_CODING_AGENT_DIR" not in seen.told["environment"]
    assert case.run("mcp", "list").told["arguments"] == ["mcp", "list"]


def test_an_agents_own_key_goes_on_where_that_was_chosen(case: Case, tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text(
        '#!/bin/sh\necho "$ANTHROPIC_API_KEY $ANTHROPIC_AUTH_TOKEN $ANTHROPIC_MODEL $ANTHROPIC_BASE_URL"\n'
    )
    program.chmod(0o700)

    def told(**choice: Any) -> str:
        words = [agents.wrap(case.home, "claude-code", [str(program)], mode="overlay", **choice)]
        own = {**os.environ, "ANTHROPIC_API_KEY": "sk-mine", "ANTHROPIC_MODEL": "claude-mine"}
        own.pop("ANTHROPIC_AUTH_TOKEN", None)
        return subprocess.run(words, env=own, capture_output=True, text=True, timeout=60, check=True).stdout

    token = case.home.agent_token.read_text().strip()
    assert told().startswith(f" {token} default http://127.0.0.1:{case.daemon.port}/t/")
    assert told(keep_keys=True).startswith(f"sk-mine  claude-mine http://127.0.0.1:{case.daemon.port}/t/{token}/x/")


def test_it_starts_the_daemon(alone: Case) -> None:
    try:
        assert alone.run().code == 0
        assert alone.home.state.exists()
    finally:
        subprocess.run(["kill", str(json.loads(alone.home.state.read_text())["pid"])], check=True)


def test_after_kill_9_it_starts_another_daemon(alone: Case) -> None:
    """opencodex#2861: whatever killed it, the next start of the agent must not talk to nobody."""
    try:
        assert alone.run().code == 0
        first = json.loads(alone.home.state.read_text())["pid"]
        os.kill(first, signal.SIGKILL)
        until(lambda: not lifecycle.lives(alone.home), "its end")
        seen = alone.run()
        second = json.loads(alone.home.state.read_text())
        assert (seen.code, second["pid"] != first) == (0, True)
        assert seen.told["models"]["providers"]["reef"]["baseUrl"] == f"http://127.0.0.1:{second['port']}/v1"
    finally:
        lifecycle.stop_daemon(alone.home)


def test_it_is_not_installed(alone: Case) -> None:
    alone.place.install.unlink()
    seen = alone.run()
    assert seen.code == ExitCode.NOT_FOUND
    assert "hint: reef harness install --adapter pi" in seen.err


@pytest.mark.parametrize("seconds", ["abc", "0", "nan", "inf"])
def test_a_pause_that_is_none_is_refused(case: Case, seconds: str) -> None:
    seen = case.run(environment={"REEF_POLL_SECONDS": seconds})
    assert (seen.code, seen.told) == (ExitCode.USAGE, {})
    assert f"REEF_POLL_SECONDS is '{seconds}'" in seen.err


def test_a_release_reaches_the_agent_and_is_told_once(case: Case) -> None:
    assert case.run().told["reef"]["activated"] is False
    release = case.publish()
    seen = case.run()
    assert seen.told["rules"].endswith(f"\n\n[reef release {release.id}]\n")
    tags = seen.told["models"]["providers"]["reef"]["headers"]
    assert (tags["x-reef-tag-release"], tags["x-reef-tag-rules"]) == (release.id, "told")
    assert seen.told["rules"].startswith("Answer briefly.\n\n- Use uv, not pip.\n")
    assert seen.told["reef"]["activated"] is True
    assert seen.told["reef"]["release"] == {
        "release_id": release.id,
        "number": 1,
        "kind": "learned",
        "reason": "rule added: Use uv, not pip.",
        "verdict": "accepted 9\u20130",
    }
    known = active.load(case.place.active, case.scenario)
    assert known is not None
    assert known.seal == delivery.seal(chain.delivered(case.home, scenario=case.scenario), key_of(case.home))
    assert case.run().told["reef"]["activated"] is False


def test_a_scenario_for_one_run(case: Case) -> None:
    case.publish(scenario="work/x")
    seen = case.run(environment={"REEF_SCENARIO": "work/x"})
    assert seen.told["reef"]["release"]["number"] == 1
    assert seen.told["models"]["providers"]["reef"]["headers"]["x-reef-scenario"] == "work/x"
    assert case.run().told["reef"]["release"]["number"] == 0
    assert case.run(environment={"REEF_SCENARIO": "../x"}).code == ExitCode.USAGE


def test_a_running_session_stays_on_its_release(case: Case) -> None:
    """BUGS B216, B217."""
    case.publish()
    with case.running() as running:
        assert running.stdout is not None
        before = json.loads(running.stdout.readline())
        for number in range(2, 8):
            case.publish(f"job_{number}", {"rules.md": f"Rule {number}.\n"})
            assert case.run().told["reef"]["release"]["number"] == number
        out, _ = running.communicate("")
    assert json.loads(out)["rules"] == before["rules"]
    assert Path(before["release"]).name in case.shelf()
    case.run()
    left = case.shelf()
    assert len(left) == 4  # the one in use, and the three before it
    assert Path(before["release"]).name not in left
    assert case.sessions() == 1


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_signals_reach_the_agent(case: Case, ending: signal.Signals) -> None:
    with case.running() as running:
        assert running.stdout is not None
        assert json.loads(running.stdout.readline())["pid"] == running.pid
        running.send_signal(ending)
        assert running.wait(30) == (-ending if ending != signal.SIGINT else -2)


def test_eight_at_once(case: Case) -> None:
    case.publish()
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: case.run(), range(8)))
    assert [one.code for one in seen] == [0] * 8, [one.err for one in seen]
    assert len({one.told["directory"] for one in seen}) == 8
    assert {one.told["release"] for one in seen} == {seen[0].told["release"]}
    case.run()
    assert case.sessions() == 1


# -- policies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("upgrade", ["ask", "pinned"])
def test_what_is_not_taken_is_told(case: Case, upgrade: str) -> None:
    case.install(upgrade=upgrade)  # type: ignore[arg-type]
    first = case.publish()
    assert case.run().told["reef"]["release"]["release_id"] == first.id
    second = case.publish("job_2", {"rules.md": "More.\n"}, reason="a second rule")
    seen = case.run()  # without a terminal nobody is asked
    assert seen.told["reef"]["release"]["release_id"] == first.id
    assert seen.told["reef"]["newer"]["release_id"] == second.id
    assert seen.told["reef"]["newer"]["reason"] == "a second rule"
    receipt.erase(case.place.shelf)  # it can be had again
    assert case.run().told["reef"]["release"]["release_id"] == first.id


def test_what_an_agent_has_no_place_for_is_said_before_it_starts(case: Case, own_pi: Path) -> None:
    said = json.loads(own_pi.read_text())
    own_pi.write_text(json.dumps({**said, "silent": True}))
    assert case.run().err == ""
    case.publish(reason="a rule\x1b[31m")
    assert case.run().err == "Reef: release r1 · a rule?[31m · accepted 9\u20130\n"
    assert case.run().err == ""
    case.install(upgrade="pinned")
    case.publish("job_2", {"rules.md": "More.\n"}, reason="a second rule")
    newer = "release r2 · a second rule · accepted 9\u20130 · this run keeps r1: reef harness update --adapter pi"
    assert case.run().err == f"Reef: {newer}\n"


@pytest.fixture
def own_pi(case: Case) -> Iterator[Path]:
    """The person's own description of Pi, which is Reef's."""
    folder = case.home.root / "adapters"
    shutil.copytree(agent.load(case.home, "pi").folder, folder)
    (folder / "adapter.json").rename(folder / "pi.json")
    yield folder / "pi.json"
    shutil.rmtree(folder)


@pytest.mark.parametrize(("answer", "number"), [("y", 2), ("n", 1), ("", 1)])
def test_asking(case: Case, answer: str, number: int) -> None:
    case.install(upgrade="ask")
    case.publish()
    case.run()
    case.publish("job_2", {"rules.md": "More.\n"}, reason="a second rule")
    said = _in_a_terminal([case.command], f"{answer}\n")
    assert "Reef: release r2 · a second rule · accepted 9\u20130 (you run r1)" in said
    assert "Use it from now on? [y/N]" in said
    line = next(line for line in said.splitlines() if '"arguments"' in line)
    told = json.loads(line[line.index("{") :])
    assert told["reef"]["release"]["number"] == number


def _in_a_terminal(words: list[str], typed: str) -> str:
    """All that a program shows on a terminal of its own, where somebody types."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(words[0], words)
    said = b""
    answered = False
    try:
        while chunk := os.read(terminal, 65536):
            said += chunk
            if not answered and b"[y/N]" in said:
                os.write(terminal, typed.encode())
                answered = True
    except OSError:  # the other side ended
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    return said.decode().replace("\r\n", "\n")


# -- faults -----------------------------------------------------------------------------------------


def test_without_a_daemon_the_last_good_release_runs(alone: Case) -> None:
    with running_daemon(alone.home):
        release = alone.publish()
        alone.run()
    alone.home.config.write_text("server: {port: nonsense}\n")  # it cannot start now
    seen = alone.run()
    assert seen.code == 0
    assert seen.told["reef"]["release"]["release_id"] == release.id
    assert "the daemon did not start" in seen.err
    assert "release r1 will answer once the daemon runs" in seen.err


def test_without_a_daemon_reef_is_bypassed_where_that_was_chosen(alone: Case) -> None:
    alone.install(on_daemon_down="bypass")
    with running_daemon(alone.home):
        assert alone.run().told["reef"]
    alone.home.config.write_text("server: {port: nonsense}\n")
    seen = alone.run("-p", "x", environment={"PLAIN": "1", "EXIT": "7"})
    assert (seen.code, seen.told["arguments"]) == (7, ["-p", "x"])
    assert not {"PI_CODING_AGENT_DIR", "REEF_RUN"} & seen.told["environment"].keys()
    assert "the daemon did not start: exit code 2; Pi runs without it: your own model, nothing is recorded" in seen.err


def test_without_a_daemon_or_a_release_it_refuses(alone: Case) -> None:
    alone.home.config.write_text("server: {port: nonsense}\n")
    seen = alone.run()
    assert (seen.code, seen.told) == (ExitCode.UNREACHABLE, {})
    assert "hint: reef doctor" in seen.err


@contextmanager
def lying(home: Home, told: dict[str, Any]) -> Iterator[None]:
    """On the socket, something that speaks like the daemon and hands out a release of its own making; all of it but
    the last byte where that is ``cut``."""

    class Liar(BaseHTTPRequestHandler):
        def address_string(self) -> str:
            return "socket"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            healthy = {"ok": True, "version": __version__, "protocol": PROTOCOL, "pid": os.getpid()}
            body = json.dumps(healthy if self.path == "/healthz" else told).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:-1] if "cut" in told and self.path != "/healthz" else body)

    home.socket.unlink(missing_ok=True)
    home.agent_token.write_text("token")
    with serving(UnixStreamServer(str(home.socket), Liar)):
        yield
    home.socket.unlink()


LIES = ["changed", "unsigned", "older", "base", "another key", "outside", "twice", "missing", "cut"]


@pytest.mark.parametrize("lie", LIES)
def test_what_cannot_be_trusted_never_runs(alone: Case, module_home: Home, lie: str) -> None:
    alone.publish()
    serves = {"url": "http://127.0.0.1:1", "models": ["default"], "context": 8192}
    first = json.loads(chain.delivered(alone.home).dump()) | serves
    alone.publish("job_2", {"rules.md": "Two.\n"})
    second = chain.delivered(alone.home)
    good = json.loads(second.dump()) | serves
    chain.publish(module_home, "job_of_theirs_" + lie.replace(" ", "_"), {"rules.md": f"{lie}\n"})
    theirs = chain.delivered(module_home)

    def forged(files: dict[str, str], **fields: Any) -> dict[str, Any]:
        return chain.signed(alone.home, second, files, **fields)._asdict()

    told = {
        "changed": good | {"files": {**good["files"], "rules.md": "Evil.\n"}},
        "unsigned": good | {"signature": None},
        "older": first,
        "base": good | {"release_id": "base", "number": 0, "files": {}},
        "another key": json.loads(theirs.dump()) | serves | {"key": Releases.open(module_home).allowed},
        "outside": good | forged({"../../.bashrc": "Evil.\n"}),
        "twice": good | forged({"extensions/pi/a.ts": "1", "extensions/pi/A.ts": "2"}),
        "missing": good | forged({}, listed={"harness/rules.md": "Two.\n"}),
        "cut": good | {"cut": True},
    }[lie]
    if lie not in ("older", "base", "cut"):
        with lying(alone.home, told):  # with nothing to fall back on
            seen = alone.run()
        assert (seen.code, seen.told) == (ExitCode.FAILED, {})
        assert "is refused: " in seen.err
    with lying(alone.home, good):
        assert alone.run().code == 0
    with lying(alone.home, told):
        seen = alone.run()
    assert seen.code == 0
    assert seen.told["rules"].startswith("Two.")
    assert ("broke the connection of" if lie == "cut" else "is refused: ") in seen.err
    assert f"release r2 {'will answer once the daemon runs' if lie == 'cut' else 'stays in use'}" in seen.err


def test_an_older_release_is_refused_and_the_last_one_stays(case: Case) -> None:
    """BUGS B219: signed once, long replaced."""
    case.publish()
    case.publish("job_2", {"rules.md": "Two.\n"})
    second = case.run().told["release"]
    active = case.place.active
    known = json.loads(active.read_text())
    known[case.scenario]["number"] = 3  # as if a third had been in use, and the store was put back
    active.write_text(json.dumps(known))
    seen = case.run()
    assert seen.code == 0
    assert seen.told["release"] == second
    assert "was in use already" in seen.err
    assert "release r2 stays in use" in seen.err


def test_a_tampered_shelf_is_made_again(case: Case) -> None:
    case.publish()
    rules = Path(case.run().told["release"]) / "AGENTS.md"
    rules.parent.chmod(0o700)
    rules.chmod(0o600)
    rules.write_text("Evil.\n")
    assert case.run().told["rules"].startswith("Answer briefly.\n\n- Use uv, not pip.\n")


def test_a_rollback_is_followed(case: Case) -> None:
    first = case.publish()
    case.publish("job_2", {"rules.md": "Two.\n"})
    case.run()
    Releases.open(case.home).rollback(case.scenario, first.id, "it was better")
    seen = case.run()
    assert seen.told["rules"].startswith("Answer briefly.\n\n- Use uv, not pip.\n")
    assert seen.told["reef"]["release"]["number"] == 3
    assert seen.told["reef"]["release"]["verdict"] == "rolled back to r1"


def test_a_check_is_passed_by_a_first_request_that_no_model_answers(case: Case) -> None:
    before = tree(case.place.root)
    seen = case.run(environment={"REEF_CHECK": "1", "ASKS": "yes"})
    assert (seen.code, seen.told, seen.err) == (0, {}, "")
    assert tree(case.place.root) == before
    assert case.daemon.get(f"/reef/sessions?scenario={case.scenario}")["items"] == []


def test_an_agent_that_asks_somebody_else_does_not_pass_a_check(case: Case) -> None:
    """BUGS B072: As Codex did with a provider's configuration that it passed over: openai/codex#5347."""
    seen = case.run(environment={"REEF_CHECK": "1"})
    assert seen.code == ExitCode.FAILED
    assert "error: pi was started and did not ask Reef: " in seen.err
    assert "hint: reef doctor; what answers holds 8,192 tokens, which may be too few: name a provider in" in seen.err


def test_a_proxy_is_kept_away_from_the_daemon(case: Case) -> None:
    seen = case.run(environment={"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "a.example"})
    assert seen.told["environment"]["NO_PROXY"] == "a.example,127.0.0.1"
