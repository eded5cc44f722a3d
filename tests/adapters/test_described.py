"""Descriptions of agents: whatever could go wrong when one is carried out is said before, with its field."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adapters import agent, described, plan, rendering
from adapters.plan import Choice
from daemon.core.paths import Home
from tests.adapters.test_shelf import base
from tests.fakes import agents, chain
from tests.fakes.daemon import running_daemon

PI: Any = json.loads((Path(described.__file__).parents[1] / "harness_templates/pi/adapter.json").read_bytes())
FILES = "modes.isolated.session"
SERVERS = {"docs": {"command": "docs"}, "far": {"url": "https://far.example"}}
ENVIRONMENT = "modes.isolated.environment"
PACKAGE = "installs.0.packages.0"


def changed(place: str, value: object) -> Any:
    made = copy.deepcopy(PI)
    *above, last = place.split(".")
    inner = made
    for name in above:
        inner = inner[int(name)] if name.isdigit() else inner[name]
    inner[last] = value
    return made


def deep(levels: int) -> Any:
    made: Any = "x"
    for _ in range(levels):
        made = [made]
    return made


def test_reefs_own_is_one() -> None:
    described.check(PI)


@pytest.mark.parametrize("said", [[], "pi", None, 5])
def test_what_is_no_object(said: object) -> None:
    with pytest.raises(ValueError, match="it is no object"):
        described.check(said)


@pytest.mark.parametrize("name", ["title", "command", "summary", "program", "check", "modes"])
def test_what_is_missing_is_said(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is missing"):
        described.check({key: value for key, value in PI.items() if key != name})


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("colour", "red", "colour is no field there is; there are title"),
        ("modes.isolated.enviroment", {}, "modes.isolated.enviroment is no field"),
        ("modes.weird", {}, "modes.weird is no field"),
        ("modes", {}, "modes: {} has none of isolated, overlay"),
        # where it writes
        (FILES, {"../x": "t"}, f"{FILES}: '../x' leads out of its folder"),
        (FILES, {"/etc/x": "t"}, f"{FILES}: '/etc/x' leads out"),
        (FILES, {"a/./b": "t"}, "leads out"),
        (FILES, {"": "t"}, "leads out"),
        (FILES, {"a\0b": "t"}, "is no path"),
        (FILES, {"lock": "t"}, "'lock' is where Reef has a file of its own"),
        (FILES, {"a": "t", "a/b": "t"}, "'a' is there twice, or a file and a folder"),
        (FILES, {"auth.json": "t"}, "'auth.json' is there twice"),
        ("modes.isolated.shared", ["../../.ssh/"], "modes.isolated.shared[0]: '../../.ssh/' leads out"),
        ("modes.isolated.seeds", {"../../bin/ls": "t"}, "modes.isolated.seeds: '../../bin/ls' leads out"),
        ("modes.isolated.skills", "../..", "modes.isolated.skills: '../..' leads out"),
        ("modes.isolated.open", ["/"], "leads out"),
        # what it writes
        (FILES, {"a": 1}, f"{FILES}.a: 1 is no object"),
        (FILES, {"a": {"file": "../../../etc/passwd"}}, f"{FILES}.a.file: '../../../etc/passwd' leads out"),
        (FILES, {"a": {"json": {}, "toml": {}}}, "is neither a text"),
        (FILES, {"a": {"toml": []}}, f"{FILES}.a.toml: [] is no table"),
        (FILES, {"a": "$REEF_NOPE"}, f"{FILES}.a: '$REEF_NOPE' stands for nothing"),
        (FILES, {"a": {"json": deep(30)}}, "is nested too deep"),
        (FILES, {"a": "\ud800"}, "has a character that no file or command takes"),
        # what it runs
        ("command", "ls", "command: 'ls' is no command"),
        ("command", "reef-../x", "is no command"),
        ("command", "reef-x\n", "is no command"),
        ("program", "../x", "program: '../x' is no program"),
        ("check", "Hello", "check: 'Hello' is no list"),
        ("check", ["a\0"], "check[0]: 'a\\x00' has a character"),
        ("title", 5, "title: 5 is no line of text"),
        ("title", "a\u202eb", "is no line of text"),
        ("silent", "yes", "silent: 'yes' is neither true nor false"),
        (ENVIRONMENT, {"LD_PRELOAD": "x.so"}, f"{ENVIRONMENT}: 'LD_PRELOAD' would put other programs"),
        (ENVIRONMENT, {"PATH": "."}, "'PATH' would put other programs"),
        (ENVIRONMENT, {"a=b": ""}, "'a=b' is no variable's name"),
        (ENVIRONMENT, {"A": ["x"]}, f"{ENVIRONMENT}.A: ['x'] is no object"),
        ("modes.isolated.arguments", [{"words": "x"}], "modes.isolated.arguments[0].words: 'x' is no list"),
        ("modes.isolated.arguments", [{"only": "../x", "words": []}], "leads out"),
        (ENVIRONMENT, {"A": "$REEF_ROOT"}, f"{ENVIRONMENT}.A: '$REEF_ROOT' stands for nothing here"),
        (ENVIRONMENT, {"A": "$REEF_EACH"}, "'$REEF_EACH' stands for nothing here"),
        ("modes.isolated.release", {"a": "$REEF_URL"}, "modes.isolated.release.a: '$REEF_URL' stands for nothing here"),
        ("check", ["$REEF_URL"], "check[0]: '$REEF_URL' stands for nothing here"),
        ("quiet", {"A": None}, "quiet.A: None is no object"),
        ("modes.isolated.model", "x", "modes.isolated.model: 'x' is no object"),
        ("mcp", {"local": {}}, "mcp.remote is missing"),
        ("thinking", {"low": 1}, "thinking.low: 1 is no text"),
        ("since", {"mcp": "-1"}, "since.mcp: '-1' is no version"),
        ("since", {"colour": "1"}, "since.colour is no field there is"),
        # what it installs
        ("installs.0.version", "1\n# link", "installs[0].version: '1\\n# link' is no version"),
        ("installs.0.packages", [], "installs[0].packages: [] is no list of one or more"),
        ("installs.0.run", [], "installs[0].run: [] is no list of one or more"),
        ("installs.0.node", "x", "installs[0].node: 'x' is no node"),
        (f"{PACKAGE}.npm", "--registry=http://evil", "installs[0].packages[0].npm: '--registry=http://evil' is no npm"),
        (f"{PACKAGE}.npm", "../x", "is no npm"),
        (f"{PACKAGE}.npm", "git+ssh://x", "is no npm"),
        (f"{PACKAGE}.pip", "pi", "names no package: npm or pip"),
        (f"{PACKAGE}.version", "1 --force", "is no version"),
        (f"{PACKAGE}.integrity", "", "is no integrity"),
        (f"{PACKAGE}.mb", "1", "is no number of megabytes"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(place: str, value: object, said: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as raised:
        described.check(changed(place, value))
    assert said in str(raised.value)


def test_a_mode_lists_models_otherwise_only_where_they_are_listed_by_fields() -> None:
    said = changed("modes.isolated.model", {"shown": False})
    described.check(said)
    del said["model"]
    with pytest.raises(ValueError, match="the fields of model that are others here"):
        described.check(said)


def named(places: frozenset[str], **more: str) -> dict[str, str]:
    return {**{place: f"${place}" for place in sorted(places)}, **more}


def text(places: frozenset[str]) -> str:
    return " ".join(named(places).values())


#: It names all that a description may name, wherever that is.
WHOLE: dict[str, Any] = {
    "title": "Own",
    "command": "reef-own",
    "summary": "mine",
    "program": "own",
    "check": ["Hello"],
    "installs": [{"version": "1", "packages": [PI["installs"][0]["packages"][0]], "run": [text(described.OF_INSTALL)]}],
    "quiet": {"QUIET": text(described.OF_QUIET)},
    "model": named(described.OF_MODEL),
    "mcp": dict.fromkeys(("local", "remote"), named(described.OF_SERVER, all=text(described.OF_SERVER))),
    "modes": {
        "overlay": {
            "release": {"release.txt": text(described.OF_RELEASE)},
            "session": {"session.txt": text(described.OF_RUN)},
            "seeds": {"seed.txt": text(described.OF_RUN)},
            "skills": "skills",
            "environment": {"SAYS": text(described.OF_RUN)},
            "scratch": {"SAYS": text(described.OF_SCRATCH)},
            "arguments": [text(described.OF_RUN), {"each": "skills", "words": [text(described.OF_EACH)]}],
        }
    },
}


def test_whatever_may_be_named_is_filled_in_where_it_stands(reef_home: Home) -> None:
    (reef_home.root / "adapters").mkdir()
    (reef_home.root / "adapters" / "own.json").write_text(json.dumps(WHOLE))
    own = agent.load(reef_home, "own")
    made = plan.plan(own, reef_home, Choice(mode="overlay"), agents.NODE)
    shows = "import json, os, sys; print(json.dumps([*sys.argv[1:], os.environ['SAYS']]))"
    with running_daemon(reef_home):
        release = chain.approved(reef_home, {**chain.HARNESS, "mcp.json": json.dumps({"mcpServers": SERVERS})})
        command = agents.wrap(reef_home, "own", [sys.executable, "-c", shows], mode="overlay")
        ran, checked = (
            subprocess.run([command], env={**os.environ, **more}, capture_output=True, text=True, check=False)
            for more in ({}, {"REEF_CHECK": "1"})
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "did not ask Reef" in checked.stderr
    lies = [path.read_text() for path in reef_home.agents.glob("own/*/**/*.txt")]
    told = [*json.loads(ran.stdout), *lies, *made.command, made.environment["QUIET"]]
    assert len(told) == 10
    assert [one for one in told if "$REEF" in one or not one] == []
    assert sum(release.id in one for one in told) == 8


def test_a_release_says_no_more_than_may_be_named() -> None:
    own, told = agent.load(Home(Path("/nowhere")), "pi"), base()
    for files in ({}, chain.HARNESS):
        assert rendering.values(told._replace(files=files), own).keys() == described.OF_RELEASE
