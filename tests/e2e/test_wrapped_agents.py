"""Every agent that Reef wraps, in both modes, through a life: installed, used, a new release, rated, back, taken away.

What is Pi's alone is in test_pi.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import new_home
from tests.e2e.terminal import Terminal
from tests.e2e.test_codex import CODEX
from tests.e2e.wrapping import SCENARIO, Installed, digests, project
from tests.fakes import mcp_server
from tests.fakes.daemon import running_daemon, until
from tests.fakes.provider import TASK, Turn, running_provider

pytestmark = pytest.mark.slow

HARNESS = {
    "rules.md": "- Use uv, not pip.\n",
    "memory/team.md": "The team is in Lagos.\n",
    "skills/greet/SKILL.md": "---\nname: greet\ndescription: How to greet.\n---\nSay hello twice.\n",
    "prompts/sum.md": "---\ndescription: A summary.\n---\nSummarise $ARGUMENTS\n",
}
THEIRS = "Their own rule: be kind."


class Told(NamedTuple):
    """``own``: where the person's rules are, below their home. ``task`` and ``again``: words before a prompt, for a
    conversation and for going on with it. ``terminal``: words for one on a screen; ``keys`` answer what it asks first,
    ``ready`` is seen when it listens. ``good`` is what a person types to rate. ``newer``: whether it tells of a release
    that came meanwhile. ``script``: of the provider, for one whose tools have other names. ``version``: not the
    one that Reef would take. ``left``: what it is said to leave out.
    """

    adapter: str
    mode: str
    own: str
    task: tuple[str, ...]
    again: tuple[str, ...]
    terminal: tuple[str, ...]
    ready: str
    keys: tuple[tuple[str, str], ...] = ()
    good: str = "/good"
    newer: bool = False
    script: Callable[[Any], Turn] | None = None
    version: str | None = None
    left: str = ""


_CLAUDE: Any = {
    "adapter": "claude-code",
    "own": ".claude/CLAUDE.md",
    "task": ("-p", "--allowedTools", "Bash", "--"),
    "again": ("-c", "-p", "--allowedTools", "Bash", "--"),
    "terminal": ("--allowedTools", "Bash"),
    "ready": "? for shortcuts",
}
#: Whether it trusts the folder.
_TRUST: Any = (("\u276f No, exit", "Down"), ("\u276f Yes, I trust", "Enter"))
_CODEX: Any = {
    "adapter": "codex",
    "own": ".codex/AGENTS.md",
    "task": ("exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"),
    "again": ("exec", "resume", "--last"),
    "terminal": (),
    "ready": " \u00b7 ",  # below its prompt, which is there before it asks about hooks
    "keys": (("Trust this folder", "Enter"), ("\u203a 1. Review hooks", "2"), ("\u203a 2. Trust all", "Enter")),
    "good": "reef-good",
    "script": CODEX.script,
}
_OPENCODE: Any = {
    "adapter": "opencode",
    "own": ".config/opencode/AGENTS.md",
    "task": ("run",),
    "again": ("run", "--continue"),
    "terminal": (),
    "ready": "Ask anything",
}
_PI: Any = {
    "adapter": "pi",
    "own": ".pi/agent/AGENTS.md",
    "task": ("-p",),
    "again": ("-c", "-p"),
    "terminal": (),
    "ready": "Reef r",
    "newer": True,
}
_OLD_PI: Any = {**_PI, "version": "0.74.2", "left": "Pi does not take this of release r2: mcp.json"}
AGENTS = {
    "pi": Told(**_PI, mode="isolated"),
    "pi-overlay": Told(**_PI, mode="overlay"),
    "pi-0.74": Told(**_OLD_PI, mode="isolated"),
    "pi-0.74-overlay": Told(**_OLD_PI, mode="overlay"),
    "claude-code": Told(**_CLAUDE, keys=_TRUST, mode="isolated"),
    "claude-code-overlay": Told(
        **_CLAUDE,
        mode="overlay",
        good="/reef:good",
        keys=(("Choose the text style", "Enter"), ("Press Enter to continue", "Enter"), *_TRUST),
    ),
    "codex": Told(**_CODEX, mode="isolated"),
    "codex-overlay": Told(**_CODEX, mode="overlay"),
    "opencode": Told(**_OPENCODE, mode="isolated"),
    "opencode-overlay": Told(**_OPENCODE, mode="overlay"),
}


@pytest.fixture(scope="module", params=AGENTS)
def told(request: pytest.FixtureRequest) -> Told:
    return AGENTS[request.param]


@pytest.fixture(scope="module")
def installed(told: Told, downloads: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    if shutil.which("npm") is None or shutil.which("tmux") is None:
        pytest.skip("npm, or tmux, is not on this machine")
    user = tmp_path_factory.mktemp("user")
    (user / told.own).parent.mkdir(parents=True)
    (user / told.own).write_text(f"{THEIRS}\n")
    (user / ".bashrc").write_text("# mine\n")
    with running_provider(TASK) as provider, new_home() as home:
        provider.reply = told.script
        config = provider.config(key="env:REEF_TEST_KEY") + "models: {scripted: p}\n"
        with running_daemon(home, config, environment={"REEF_TEST_KEY": "k"}) as daemon:
            made = Installed(daemon, provider, user, adapter=told.adapter, mode=told.mode, version=told.version)
            if told.mode == "isolated":
                made.install_both_ways(downloads)
            else:
                made.install(downloads)  # the packages are the same
            yield made


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return project(tmp_path / "a project ü")


def released(installed: Installed, folder: Path, files: Mapping[str, str], reason: str) -> str:
    """A person's own release, by the commands: its id."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    mine = ("--scenario", SCENARIO)
    proposed = installed.answered("harness", "propose", str(folder), "--reason", reason, *mine)
    release: str = installed.answered("releases", "approve", proposed["id"], *mine, "--yes")["id"]
    return release


def second_release(log: Path) -> dict[str, str]:
    """Other rules, the model, and a server that says in ``log`` what it is asked."""
    return {
        **HARNESS,
        "rules.md": "- Be brief.\n",
        "config.json": json.dumps({"model": "scripted", "thinking": "low"}),
        "mcp.json": mcp_server.named(log),
    }


def listening(terminal: Terminal, told: Told) -> str:
    """What is seen when it listens, after its questions about who it works for, which may come a moment later. One that
    is drawn anew has its first answer chosen again: a key waits until the screen stays as it is.
    """
    deadline, settled, still, before = time.monotonic() + 120, 0, 0, ""
    while settled < 10:
        shown = terminal.screen()
        assert time.monotonic() < deadline, f"{told.adapter} does not listen:\n{shown}"
        still, before = still + 1 if shown == before else 0, shown
        key = next((key for asked, key in told.keys if asked in shown), None)
        if key is not None and still >= 5:
            terminal("send-keys", key)
            changed(terminal, shown)
        settled = settled + 1 if key is None and told.ready in shown else 0
        time.sleep(0.1)
    return shown


def changed(terminal: Terminal, shown: str) -> None:
    """Wait until the screen is another one; a key that came before the program read any is lost, so not for ever."""
    deadline = time.monotonic() + 10
    while terminal.screen() == shown and time.monotonic() < deadline:
        time.sleep(0.1)


def reports(installed: Installed, receipt: str) -> list[tuple[float | None, str]]:
    found = installed.daemon.get(f"/reef/records/{receipt}")["reports"]
    return [(one["score"], one["feedback"]) for one in found]


def last(installed: Installed) -> str:
    receipt: str = installed.daemon.get(f"/reef/last?scenario={SCENARIO}")["receipt"]
    return receipt


def ended(installed: Installed) -> dict[str, Any] | None:
    """How it is listed, once nothing of it runs."""
    rows: list[dict[str, Any]] = installed.answered("harness", "list")["items"]
    row = next(row for row in rows if row["adapter"] == installed.adapter)
    return None if row["running"] else row


def test_both_ways_leave_the_same_to_the_byte_and_nothing_at_home(installed: Installed) -> None:
    applied, piped = installed.trees[0], installed.trees[-1]
    assert {path for path in applied.keys() | piped.keys() if applied.get(path) != piped.get(path)} == set()
    assert digests(installed.user) == installed.before
    assert installed.provider.requests == []
    assert installed.sessions() == []


def test_a_life(installed: Installed, told: Told, work: Path, tmp_path: Path) -> None:
    done = installed.run(work, *told.task, "create hello.txt")
    assert (done.returncode, TASK[-1].text in done.stdout) == (0, True), done
    assert (work / "hello.txt").read_text() == "hello-reef\n"
    (session,) = installed.sessions()
    assert (session["agent"], session["scenario"], session["turns"]) == (told.adapter, SCENARIO, 3)
    cwd, commit, tags = installed.requests()[-1]
    assert (cwd, len(commit or ""), tags["release"]) == (str(work), 40, "base")
    token = installed.daemon.agent_token
    assert not any(token in value for request in installed.provider.requests for _, value in request.headers)
    assert (THEIRS in installed.told()) == (told.mode == "overlay")

    first = released(installed, tmp_path / "first", HARNESS, "our team's rules")
    with installed.terminal(work, *told.terminal) as terminal:
        shown = listening(terminal, told)
        shown += terminal.enter("create hello.txt", lambda: TASK[-1].text in terminal.screen() and terminal.screen())
        assert installed.requests()[-1][2]["release"] == first
        assert "release r1 · our team's rules" in shown, shown
        asked = installed.told()
        assert [word in asked for word in ("Use uv, not pip", "in Lagos", "How to greet.", THEIRS)] == [
            True, True, True, told.mode == "overlay",
        ]  # fmt: skip
        about, before = last(installed), len(installed.provider.requests)
        terminal.enter(f"{told.good} nice one", lambda: f"good on {about}" in terminal.screen())
        until(lambda: reports(installed, about) == [(1.0, "nice one")], "the mark is on the answer that was meant")
        assert len(installed.provider.requests) == before  # no model was asked

        log = tmp_path / "asked of the server"
        second = released(installed, tmp_path / "second", second_release(log), "shorter")
        terminal.enter("once more", lambda: len(installed.provider.requests) > before)
        assert "Use uv, not pip" in installed.told()  # a session that runs stays on its release
        if told.newer:
            terminal.see("release r2 \u00b7 shorter")
        refused = installed.reef("harness", "uninstall", "--adapter", told.adapter)
        assert (refused.returncode, "not ended yet" in refused.stderr) == (6, True), refused
        terminal("kill-server")

    before = len(installed.sessions())
    was = installed.run(work, *told.again, "and again")
    assert (was.returncode, len(installed.sessions())) == (0, before), was  # it is the same conversation
    # Some go on with the rules that a conversation began with; Codex, isolated, says that new ones replace them.
    kept = told.adapter == "claude-code" or (told.adapter, told.mode) == ("codex", "overlay")
    assert ["Be brief" in installed.told(), "Use uv, not pip" in installed.told()] == [
        not kept, kept or told.adapter == "codex",
    ]  # fmt: skip
    assert installed.requests()[-1][2]["release"] == (first if kept else second)
    counted = installed.daemon.get(f"/reef/records/{last(installed)}")["release_id"]
    assert counted == (first if kept else second)
    done = installed.run(work, *told.task, "another thing")
    assert done.returncode == 0, done
    assert installed.requests()[-1][2]["release"] == second
    assert "Be brief" in installed.told()
    assert (installed.model(), "low" in installed.effort()) == ("scripted", True)
    if told.left:
        assert (told.left in was.stderr, log.exists()) == (True, False)
    else:
        until(lambda: log.exists() and "tools/list" in log.read_text(), "the release's server is asked for its tools")

    back = installed.answered("releases", "rollback", "--scenario", SCENARIO, "--yes")
    assert back["restores"] == first
    done = installed.run(work, *told.task, "back again")
    assert done.returncode == 0, done
    assert installed.requests()[-1][2]["release"] == back["id"]
    assert "Use uv, not pip" in installed.told()
    assert installed.model() == "default"
    assert (installed.user / told.own).read_text() == f"{THEIRS}\n"


def test_z_uninstalling_leaves_only_what_is_the_persons(installed: Installed, told: Told) -> None:
    listed = until(lambda: ended(installed), "the runs in the terminal have ended")
    assert (listed["mode"], listed["scenario"], listed["upgrade"]) == (told.mode, SCENARIO, "auto")
    assert listed["release"].startswith("r3-")
    done = installed.reef("harness", "uninstall", "--adapter", told.adapter, "--json")
    assert done.returncode == 0, done.stderr
    left = [path.name for path in installed.place.root.iterdir()] if installed.place.root.exists() else []
    assert set(left) <= {"user"}
    assert json.loads(done.stdout)["kept"] == [str(installed.place.root / name) for name in left]
    assert not installed.home.commands.exists()
    if told.mode == "isolated":
        assert digests(installed.user) == installed.before
    assert installed.reef("harness", "uninstall", "--adapter", told.adapter).returncode == 5
