"""What an agent may fetch of its harness, and what it gets: over TCP, with the agent token, as the wrapper does."""

import json
import subprocess
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from adapters import agent, delivery, plan, script
from adapters.machine import find_node
from adapters.plan import Choice
from daemon.core.paths import Home
from daemon.core.releases import BASE_RELEASE, Release, ReleaseKind
from daemon.server import install
from daemon.store.releases import Releases
from reef_cli.wrapped import key_of
from tests.fakes import chain
from tests.fakes.daemon import RunningDaemon, running_daemon

COVERS = ("daemon/server/install.py",)


CONFIG = "server: {port: 0}"


@pytest.fixture(scope="module")
def releases(daemon: RunningDaemon) -> list[Release]:
    """Three in the scenario ``work/x``."""
    return [
        chain.publish(daemon.home, f"job_{n}", {"rules.md": f"Rule {n}.\n"}, scenario="work/x", reason=f"rule {n}")
        for n in (1, 2, 3)
    ]


def ask(daemon: RunningDaemon, path: str, scenario: str | None = None, *, token: str | None = None) -> tuple[int, Any]:
    """As an agent, unless another token is given."""
    connection = HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    headers = {"authorization": f"Bearer {daemon.agent_token if token is None else token}"}
    if scenario:
        headers["x-reef-scenario"] = scenario
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    raw = response.read()
    is_json = response.getheader("content-type") == "application/json"
    connection.close()
    return response.status, json.loads(raw) if is_json else raw.decode()


def test_the_base(daemon: RunningDaemon) -> None:
    status, told = ask(daemon, "/reef/harness?adapter=pi")
    assert status == 200
    assert (told["release_id"], told["number"], told["files"]) == (BASE_RELEASE, 0, {})
    assert (told["url"], told["context"]) == (daemon.url, 8192)
    assert daemon.get("/reef/status")["context"] == 8192
    assert "default" in told["models"]


def test_what_default_is_says_how_much_it_holds(reef_home: Home) -> None:
    engines = "engines: {p: {base_url: 'http://127.0.0.1:1/v1'}}\nmodels: {default: {engine: p, model: m}}\n"
    with running_daemon(reef_home, f"server: {{port: 0}}\n{engines}") as running:
        assert ask(running, "/reef/harness?adapter=pi")[1]["context"] == 128_000
        assert ask(running, "/reef/harness/check?run=check_1")[1]["hint"] == "reef doctor"


def test_the_head_can_be_checked(daemon: RunningDaemon, releases: list[Release]) -> None:
    status, told = ask(daemon, "/reef/harness?adapter=pi", "work/x")
    assert status == 200
    assert (told["release_id"], told["parent"]) == (releases[2].id, releases[1].id)
    checked = delivery.checked(delivery.parse(told), key_of(daemon.home))
    assert checked.files == {"rules.md": "Rule 3.\n"}
    assert told["key"].split() == key_of(daemon.home).read_text().split()


def test_an_earlier_one_by_its_id(daemon: RunningDaemon, releases: list[Release]) -> None:
    _, told = ask(daemon, f"/reef/harness?release_id={releases[0].id}&scenario=work/x")
    assert (told["number"], told["files"]) == (1, {"rules.md": "Rule 1.\n"})
    status, refused = ask(daemon, "/reef/harness?release_id=r9-00000000", "work/x")
    assert (status, refused["error"]["kind"]) == (404, "not_found")


def test_what_is_newer(daemon: RunningDaemon, releases: list[Release]) -> None:
    status, newer = ask(daemon, "/reef/harness/releases?after=1", "work/x")
    assert status == 200
    assert [(row["release_id"], row["number"], row["reason"]) for row in newer] == [
        (releases[2].id, 3, "rule 3"),
        (releases[1].id, 2, "rule 2"),
    ]
    assert set(newer[0]) == {"release_id", "number", "reason", "verdict", "kind", "created_ns"}
    assert ask(daemon, "/reef/harness/releases?after=3", "work/x") == (200, [])
    assert ask(daemon, f"/reef/harness/releases?after={'9' * 5000}", "work/x")[0] == 400
    assert ask(daemon, "/reef/harness/releases") == (200, [])
    assert ask(daemon, "/reef/harness/releases?after=x")[0] == 400


def test_the_public_client_s_words_for_the_same(daemon: RunningDaemon, releases: list[Release]) -> None:
    """It lists versions, newest last, pulls one by its name, and notes what it got as ``artifact_version``."""
    status, told = ask(daemon, "/reef/harness/versions", "work/x")
    assert status == 200
    assert [row["artifact_version"] for row in told["versions"]] == [release.id for release in releases]
    assert ask(daemon, "/reef/harness/versions") == (200, {"versions": []})
    _, first = ask(daemon, f"/reef/harness?version={told['versions'][0]['artifact_version']}", "work/x")
    assert (first["artifact_version"], first["files"]) == (releases[0].id, {"rules.md": "Rule 1.\n"})
    assert ask(daemon, "/reef/harness")[1]["artifact_version"] == BASE_RELEASE


def test_the_script_is_the_plan(daemon: RunningDaemon) -> None:
    node = find_node()
    if node is None:
        pytest.skip("Node.js and npm are not on this machine")
    status, text = ask(daemon, "/reef/harness/install?adapter=pi&scenario=work/x&upgrade=ask")
    assert status == 200
    assert text == script.script(plan.plan(agent.load(daemon.home, "pi"), daemon.home, Choice("work/x", "ask"), node))
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
    assert daemon.agent_token not in text
    assert "link=yes" in ask(daemon, "/reef/harness/install?adapter=pi&link=1")[1]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/reef/harness/install?adapter=emacs", 404),
        ("/reef/harness?adapter=emacs", 404),
        ("/reef/harness/install?upgrade=never", 400),
        ("/reef/harness/install?mode=inside", 400),
        ("/reef/harness/install?on_daemon_down=cry", 400),
        ("/reef/harness/install?agent_version=9", 404),
        ("/reef/harness/install?adapter=pi&keep_keys=1", 404),
        ("/reef/harness?scenario=..%2Fx", 400),
        ("/reef/harness/install?scenario=$(x)", 400),
        ("/reef/harness/check?run=run_1", 400),
    ],
)
def test_what_is_refused(daemon: RunningDaemon, path: str, status: int) -> None:
    found, told = ask(daemon, path)
    assert found == status
    assert "\n  hint: " in piped(told)[1] if "/install" in path else told["error"]["hint"]


def piped(text: str) -> tuple[int, str]:
    """Exit code and stderr of a shell that gets it."""
    done = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", ["emacs", "$(touch {})", "'; touch {}; '", "`touch {}`", "\n touch {}\n", "\x1b[2J"])
def test_what_a_shell_gets_of_a_refusal_says_why_and_fails(daemon: RunningDaemon, tmp_path: Path, name: str) -> None:
    named = name.format(tmp_path / "ran")
    status, text = ask(daemon, f"/reef/harness/install?adapter={quote(named)}")
    code, said = piped(text)
    assert (status, code) == (404, 1)
    assert said.startswith(f"error: no adapter is called {named[:80]!r}\n  hint: there is: aider, claude-code, ")
    assert said.isascii()
    assert "\x1b" not in said
    assert not (tmp_path / "ran").exists()


def test_without_a_token_a_shell_is_told_so_too(daemon: RunningDaemon) -> None:
    status, text = ask(daemon, "/reef/harness/install?adapter=pi", token="wrong")
    code, said = piped(text)
    assert (status, code, said.splitlines()[0]) == (401, 1, "error: no valid token")


def test_adapters(daemon: RunningDaemon) -> None:
    _, told = ask(daemon, "/reef/harness/adapters")
    row = next(row for row in told["items"] if row["name"] == "pi")
    assert (row["version"], row["installed"], row["command"]) == ("1.6.0", False, None)
    assert "isolated" in row["modes"]


@pytest.mark.parametrize("path", ["", "/releases", "/versions", "/install", "/adapters", "/check?run=check_1"])
def test_without_a_token_nothing(daemon: RunningDaemon, path: str) -> None:
    assert ask(daemon, f"/reef/harness{path}", token="")[0] == 401


def test_the_agents_token_still_reads_no_traces(daemon: RunningDaemon) -> None:
    assert ask(daemon, "/reef/sessions")[0] == 401


def test_verdicts_in_a_few_words(daemon: RunningDaemon, releases: list[Release]) -> None:
    from dataclasses import replace

    release = releases[0]
    assert install.verdict(release) == "accepted 9\u20130"
    assert install.verdict(replace(release, kind=ReleaseKind.UNPROVEN)) == "released without proof (9\u20130)"
    assert install.verdict(replace(release, gate=None)) == "released without proof"
    store = Releases.open(daemon.home)
    back = store.rollback("work/x", releases[0].id, "why not")
    assert install.verdict(back) == "rolled back to r1"
