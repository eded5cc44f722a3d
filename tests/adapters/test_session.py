"""Sessions of a wrapped agent: they live as long as their process, and what is dead is swept."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters import agent, session, shelf
from adapters.session import Place
from daemon.core.errors import ConfigError, NotFound
from daemon.core.paths import Home, private_directory
from tests.adapters.test_shelf import base

PI = agent.load(Home(Path("/nowhere")), "pi")
MODE = PI.mode("isolated")
VALUES = {
    "REEF_URL": "http://127.0.0.1:8900",
    "REEF_TOKEN_FILE": "/home/it's/tokens/agent",
    "REEF_QUOTED_TOKEN_FILE": "'/home/it'\"'\"'s/tokens/agent'",
    "REEF_SCENARIO": "default",
    "REEF_HEADERS": {"x-reef-cwd": "/work", "x-reef-tag-run": "run_1", "x-reef-tag-release": "base"},
    "REEF_RUN": "run_1",
    "REEF_RELEASE": "base",
    "REEF_MODEL": None,
    "REEF_THINKING": None,
    "REEF_MODEL_NAME": "default",
    "REEF_MCP": None,
    "REEF_RELEASE_FACTS": {"release_id": "base", "number": 0},
    "REEF_ACTIVATED": False,
    "REEF_NEWER": None,
    "REEF_POLL_SECONDS": 60.0,
    "REEF_MODELS": [{"id": "default"}],
}
#: Begins a run, says so, and becomes a process that waits, as the wrapper becomes the agent.
RUN = """
import os, sys
from pathlib import Path
from adapters import session
from tests.adapters.test_session import MODE, PI, VALUES
place = session.Place(Path(sys.argv[1]))
with session.turn(place):
    session.begin(place, sys.argv[2], Path(sys.argv[3]), adapter=PI, mode=MODE, values=VALUES)
os.execvp("sh", ["sh", "-c", "echo ready; exec cat"])
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "agents" / "pi")


@pytest.fixture
def folder(place: Place) -> Path:
    return shelf.put(place.shelf, base(), {"AGENTS.md": "rules", "skills/a/SKILL.md": "x"})


@contextmanager
def running(place: Place, run: str, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(place.root), run, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait()


def swept(place: Place) -> dict[str, str]:
    with session.turn(place):
        return session.sweep(place)


def test_a_directory_is_links_and_files_of_its_own(place: Place, folder: Path) -> None:
    environment, arguments = session.begin(place, "run_1", folder, adapter=PI, mode=MODE, values=VALUES)
    directory = place.sessions / "run_1"
    assert environment["PI_CODING_AGENT_DIR"] == str(directory)
    assert arguments == []
    assert (environment["PI_OFFLINE"], environment["PI_CODING_AGENT_SESSION_DIR"]) == ("1", None)
    for name in ("AGENTS.md", "skills"):
        assert (directory / name).readlink() == folder / name
    assert (directory / "sessions").resolve() == place.user / "sessions"
    assert not (directory / "models.json").is_symlink()
    provider = json.loads((directory / "models.json").read_text())["providers"]["reef"]
    assert provider["baseUrl"] == "http://127.0.0.1:8900/v1"
    assert provider["models"] == [{"id": "default"}]
    assert provider["headers"]["x-reef-tag-run"] == "run_1"
    assert "newer" not in json.loads((directory / "reef.json").read_text())


def test_the_persons_settings_outlive_sessions(place: Place, folder: Path) -> None:
    session.begin(place, "run_1", folder, adapter=PI, mode=MODE, values=VALUES)
    assert json.loads((place.user / "settings.json").read_text())["defaultProvider"] == "reef"
    (place.sessions / "run_1" / "settings.json").write_text('{"theme": "dark"}')  # as Pi writes it
    (place.sessions / "run_1" / "auth.json").write_text("{}")
    session.begin(place, "run_2", folder, adapter=PI, mode=MODE, values=VALUES)
    assert (place.sessions / "run_2" / "settings.json").read_text() == '{"theme": "dark"}'
    assert (place.user / "auth.json").read_text() == "{}"


def test_a_run_lives_as_long_as_the_process_it_became(place: Place, folder: Path) -> None:
    with running(place, "run_1", folder) as process:
        assert swept(place) == {"run_1": folder.name}
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert swept(place) == {}
    assert list(place.sessions.iterdir()) == []
    assert folder.exists()


def test_one_is_swept_and_the_other_stays(place: Place, folder: Path) -> None:
    with running(place, "run_1", folder):
        with running(place, "run_2", folder):
            assert sorted(swept(place)) == ["run_1", "run_2"]
        assert sorted(swept(place)) == ["run_1"]
        assert [path.name for path in place.sessions.iterdir()] == ["run_1"]


def test_a_directory_without_a_lock_is_a_start_that_was_killed(place: Place) -> None:
    (place.sessions / "run_0").mkdir(parents=True)
    assert swept(place) == {}
    assert list(place.sessions.iterdir()) == []


def test_a_turn_is_one_at_a_time(place: Place) -> None:
    """A second one waits: the child ends only after the parent lets go."""
    code = (
        "import sys; from pathlib import Path; from adapters import session\n"
        "print('wants', flush=True)\n"
        "with session.turn(session.Place(Path(sys.argv[1]))): print('has', flush=True)"
    )
    with session.turn(place):
        child = subprocess.Popen([sys.executable, "-c", code, str(place.root)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "wants\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)
    out, _ = child.communicate(timeout=30)
    assert out == "has\n"


@pytest.mark.parametrize("text", [b"\xef\xbb\xbf{}", b'{"a": 1,\r\n"b": 2}\r\n', b"{ // mine\n}", b"{", b""])
def test_a_file_of_the_persons_is_theirs_to_the_byte(place: Place, folder: Path, text: bytes) -> None:
    """BUGS B107: Reef reads and writes none of them, whatever a release brings, so nothing in them can be lost."""
    names = [name for name in (*MODE.shared, *MODE.seeds) if not name.endswith("/")]
    private_directory(place.user)
    for name in names:
        (place.user / name).write_bytes(text)
    values = VALUES | {"REEF_MCP": {"new": {"command": "x"}}}
    session.begin(place, "run_1", folder, adapter=PI, mode=MODE, values=values)
    for name in names:
        assert (place.user / name).read_bytes() == text
        assert (place.sessions / "run_1" / name).readlink() == place.user / name
    assert json.loads((place.sessions / "run_1" / "reef.json").read_text())["mcp"] == {"new": {"command": "x"}}


def test_arguments_come_before_the_persons(place: Place) -> None:
    folder = shelf.put(place.shelf, base(), {"extensions/a.ts": "1", "extensions/b.ts": "2", "skills/a/SKILL.md": "x"})
    values = VALUES | {"REEF_THINKING": "high"}
    _, arguments = session.begin(place, "run_1", folder, adapter=PI, mode=PI.mode("overlay"), values=values)
    directory = place.sessions / "run_1"
    assert arguments == [
        "-e", f"{directory}/extensions/a.ts", "-e", f"{directory}/extensions/b.ts", "--skill", f"{directory}/skills",
        "--model", "reef/default", "--thinking", "high",
    ]  # fmt: skip


def test_a_release_never_takes_the_place_of_a_sessions_file(place: Place) -> None:
    folder = shelf.put(place.shelf, base(), {"models.json": "evil", "sessions/x": "evil", "more.md": "x"})
    session.begin(place, "run_1", folder, adapter=PI, mode=MODE, values=VALUES)
    directory = place.sessions / "run_1"
    assert "evil" not in (directory / "models.json").read_text()
    assert (directory / "sessions").resolve() == place.user / "sessions"
    assert (directory / "more.md").read_text() == "x"


def test_what_an_agent_adds_to_a_folder_stays_out_of_the_release(place: Place, folder: Path) -> None:
    """Codex puts skills of its own beside those of a release."""
    with session.turn(place):
        session.begin(place, "run_1", folder, adapter=PI, mode=MODE._replace(open=("skills",)), values=VALUES)
    (directory,) = place.sessions.iterdir()
    assert (directory / "skills" / "a").resolve() == folder / "skills" / "a"
    (directory / "skills" / "own").mkdir()
    assert [path.name for path in (folder / "skills").iterdir()] == ["a"]


def test_behind_a_link_nothing_of_the_persons_is_swept(tmp_path: Path) -> None:
    place = Place(tmp_path / "pi")
    (tmp_path / "mine" / "work").mkdir(parents=True)
    place.root.mkdir()
    place.sessions.symlink_to(tmp_path / "mine")
    assert session.sweep(place) == {}
    assert (tmp_path / "mine" / "work").is_dir()


@pytest.mark.parametrize(
    "said",
    ["[]", "null", "{}", '{"command": []}', '{"command": ["/bin/true"]}', '{"command": ["/bin/true"], "scenario": 5}'],
)
def test_an_install_that_says_nothing_is_told(tmp_path: Path, said: str) -> None:
    place = Place(tmp_path)
    with pytest.raises(NotFound, match="pi is not installed"):
        session.installation(place, "pi")
    place.install.write_text(said)
    with pytest.raises(ConfigError, match=r"install\.json does not say what was chosen"):
        session.installation(place, "pi")
    kept = {"command": ["/bin/true"], "scenario": "default", "upgrade": "auto", "version": "1"}
    place.install.write_text(json.dumps(kept))
    assert session.installation(place, "pi") == kept
