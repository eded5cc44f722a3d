"""install.sh in homes of its own: quick tests of how it refuses, slow ones of whole installs."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

SCRIPT = ROOT / "install.sh"
#: Certificates and index settings of the person's own reach the installer; nothing else does.
KEPT = ("PIP_CERT", "PIP_INDEX_URL", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """A home whose name has a space and letters beyond ASCII."""
    folder = tmp_path / "Ürsula H" / "林"
    folder.mkdir(parents=True)
    return folder


def environment(person: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {"HOME": str(person), "PATH": os.environ["PATH"], "LC_ALL": "C"} | kept | more


def install(
    person: Path, *arguments: str, script: Path = SCRIPT, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run it as a program would: no terminal, no input."""
    return subprocess.run(
        ["sh", str(script), *arguments], env=env or environment(person), cwd=person, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, encoding="utf-8", start_new_session=True, timeout=1500,
    )  # fmt: skip


def everything_in(person: Path) -> list[str]:
    return sorted(str(path.relative_to(person)) for path in person.rglob("*"))


def tools(tmp_path: Path, *names: str) -> str:
    """A PATH with nothing but these programs."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in names:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


def test_help_tells_options_variables_and_exit_codes_and_does_nothing(person: Path) -> None:
    done = install(person, "--help")
    assert done.returncode == 0
    for word in ("--demo", "--uninstall", "--purge", "REEF_INSTALL_DIR", "REEF_HOME", "Exit status"):
        assert word in done.stderr
    assert everything_in(person) == []


@pytest.mark.parametrize("arguments", [("--frobnicate",), ("--purge",), ("--demo", "now")])
def test_wrong_use_is_exit_code_2_and_does_nothing(person: Path, arguments: tuple[str, ...]) -> None:
    assert install(person, *arguments).returncode == 2
    assert everything_in(person) == []


def test_nothing_runs_when_the_download_was_cut_off(person: Path, tmp_path: Path) -> None:
    """Cut at any line: the shell either finds a syntax error or only defines functions."""
    lines = SCRIPT.read_text("utf-8").splitlines(keepends=True)
    for count in range(1, len(lines), 7):
        (tmp_path / "cut.sh").write_text("".join(lines[:count]), "utf-8")
        done = install(person, script=tmp_path / "cut.sh")
        assert done.stdout == ""
        assert "Reef" not in done.stderr
    assert everything_in(person) == []


def test_the_only_command_outside_functions_is_the_last_line() -> None:
    body = re.sub(r"<<'HELP'\n.*?\nHELP\n", "\n", SCRIPT.read_text("utf-8"), flags=re.S)
    outside = [line for line in body.splitlines() if re.match(r"[a-zA-Z]", line) and not re.match(r"\w+\(\) \{", line)]
    assert outside == ['main "$@"']


def test_it_never_asks_for_root_and_touches_no_start_file() -> None:
    text = SCRIPT.read_text("utf-8")
    assert not re.search(r"^\s*sudo ", text, re.M)
    assert not re.search(r"\.(bashrc|profile|zshrc|bash_profile|zprofile)", text)


def test_without_python_it_says_what_to_install(person: Path, tmp_path: Path) -> None:
    path = tools(tmp_path, "sh", "uname", "dirname", "grep", "pwd")
    done = install(person, env=environment(person, PATH=path))
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
    assert everything_in(person) == []


def test_piped_into_a_shell_it_says_that_it_needs_a_clone(person: Path) -> None:
    done = subprocess.run(
        ["sh"], input=SCRIPT.read_text("utf-8"), env=environment(person), cwd=person, capture_output=True, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "clone its repository" in done.stderr
    assert everything_in(person) == []


def test_a_command_of_somebody_elses_is_left_alone(person: Path) -> None:
    other = person / ".local" / "bin" / "reef"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\n")
    done = install(person)
    assert done.returncode == 1
    assert "is not Reef's" in done.stderr
    assert other.read_text() == "#!/bin/sh\n"


def test_a_second_install_at_once_is_refused(person: Path) -> None:
    turn = person / ".local" / "share" / "reef" / "installing"
    turn.mkdir(parents=True)
    (turn / "pid").write_text(str(os.getpid()))
    done = install(person)
    assert done.returncode == 1
    assert f"another install is under way (pid {os.getpid()})" in done.stderr
    assert turn.exists()


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """An install that finds no package index."""
    person = tmp_path_factory.mktemp("Ürsula H")
    return person, install(person, env=environment(person, PIP_NO_INDEX="1", PIP_CONFIG_FILE="/dev/null"))


Failed = tuple[Path, subprocess.CompletedProcess[str]]


def test_a_failure_is_loud_and_leaves_nothing_behind(failed: Failed) -> None:
    """BUGS B211, B212."""
    person, done = failed
    assert done.returncode == 1
    assert "cannot install the packages that Reef needs" in done.stderr
    assert "installed" not in done.stderr
    assert done.stdout == ""
    assert not (person / ".local" / "share" / "reef").exists()
    assert not (person / ".local" / "bin").exists()


def test_it_says_beforehand_what_it_downloads_how_big_and_under_which_licence(failed: Failed) -> None:
    person, done = failed
    told = done.stderr.partition("·")[0]
    for word in ("33 MB", "77 MB", "93 MB", "Apache-2.0", "MIT", str(person)):
        assert word in told


def test_uninstall_where_nothing_is_installed_says_so(person: Path) -> None:
    done = install(person, "--uninstall")
    assert done.returncode == 0
    assert "Nothing of Reef is installed" in done.stderr


@pytest.mark.parametrize(("set_up", "words"), [(True, "stop --at-login"), (False, "stop ")])
def test_uninstall_takes_what_starts_it_at_login_away(person: Path, set_up: bool, words: str) -> None:
    """Else the session would go on starting a program that is gone."""
    place = person / ".local" / "share" / "reef"
    program = place / "env-1" / "bin" / "reef"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho "$REEF_HOME: $*" >>"{person}/calls"\n')
    program.chmod(0o755)
    (place / "env-1" / "pyvenv.cfg").write_text("")
    (person / ".reef").mkdir()
    if set_up:
        (person / ".reef" / "login.json").write_text("{}")
    (place / "receipt").write_text(f"current {place}/env-1\nhome {person}/.reef\n")
    assert install(person, "--uninstall").returncode == 0
    assert f"{(person / 'calls').read_text().strip()} ".endswith(f": {words.strip()} ")
    assert not program.exists()


def test_purge_spares_what_is_not_reefs(person: Path) -> None:
    precious = person / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("x")
    done = install(person, "--uninstall", "--purge", env=environment(person, REEF_HOME=str(precious)))
    assert done.returncode == 1
    assert "does not look like Reef's" in done.stderr
    assert (precious / "thesis.tex").exists()


def test_purge_takes_the_commands_along_that_led_into_it(person: Path) -> None:
    (person / ".reef" / "store").mkdir(parents=True)
    (person / ".local" / "bin").mkdir(parents=True)
    for name, target in (("reef-pi", ".reef/bin/reef-pi"), ("reef-mine", "mine")):
        (person / ".local" / "bin" / name).symlink_to(person / target)
    assert install(person, "--uninstall", "--purge").returncode == 0
    assert [link.name for link in (person / ".local" / "bin").iterdir()] == ["reef-mine"]


# -- whole installs -----------------------------------------------------------------------------------------------


@pytest.fixture
def seeded(person: Path, free_port: int) -> Iterator[Path]:
    """A home that shares the engine's kept wheel, with a port of its own, and where no daemon survives the test."""
    (person / ".reef").mkdir(mode=0o700)
    (person / ".reef" / "config.yaml").write_text(f"server: {{port: {free_port}}}\n")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reef" / "wheels"
    if cache.is_dir():
        shutil.copytree(cache, person / ".cache" / "reef" / "wheels")
    yield person
    install(person, "--uninstall")


def reef(person: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = str(person / ".local" / "bin" / "reef")
    return subprocess.run(
        [command, *arguments], env=environment(person), cwd=person, capture_output=True, text=True, timeout=120
    )


@pytest.mark.slow
@pytest.mark.engine
def test_install_upgrade_and_uninstall(seeded: Path) -> None:
    """BUGS B211, B212, B214."""
    first = install(seeded)
    assert first.returncode == 0, first.stderr
    assert first.stdout == ""
    assert f"Reef is installed. Next: {seeded}/.local/bin/reef demo" in first.stderr  # it is not on this PATH
    assert 'export PATH="$HOME/.local/bin:$PATH"' in first.stderr
    assert "%" not in first.stderr
    assert "\r" not in first.stderr
    models = json.loads(reef(seeded, "models", "list", "--json").stdout)["items"]
    assert [(model["source"], model["licence"], model["active"]) for model in models] == [
        ("default", "Apache-2.0", True)
    ]
    before = json.loads(reef(seeded, "status", "--json").stdout)["pid"]

    again = install(seeded)
    assert again.returncode == 0, again.stderr
    assert "restarting the daemon" in again.stderr
    assert json.loads(reef(seeded, "status", "--json").stdout)["pid"] != before
    assert len(json.loads(reef(seeded, "models", "list", "--json").stdout)["items"]) == 1

    gone = install(seeded, "--uninstall")
    assert gone.returncode == 0, gone.stderr
    assert not (seeded / ".local" / "share" / "reef").exists()
    assert not (seeded / ".local" / "bin" / "reef").is_symlink()
    assert (seeded / ".reef" / "store").is_dir()

    purged = install(seeded, "--uninstall", "--purge")
    assert purged.returncode == 0, purged.stderr
    assert not (seeded / ".reef").exists()


@pytest.mark.slow
def test_without_a_compiler_remote_engines_still_work(seeded: Path, tmp_path: Path) -> None:
    needed = (
        "sh", "uname", "dirname", "grep", "pwd", "date", "mktemp", "mkdir", "rm", "rmdir", "cat", "ln", "mv", "sed",
        "sort", "readlink", "env",
    )  # fmt: skip
    path = tools(tmp_path, *needed)
    (Path(path) / "python3").symlink_to(getattr(sys, "_base_executable", sys.executable))
    shutil.rmtree(seeded / ".cache", ignore_errors=True)
    done = install(seeded, env=environment(seeded, PATH=path, REEF_WHEEL_INDEX="http://127.0.0.1:9/"))
    assert done.returncode == 3, done.stderr
    assert "there is no C++ compiler" in done.stderr
    assert "Reef works with remote engines only" in done.stderr
    assert "Reef is installed" not in done.stderr
    assert json.loads(reef(seeded, "status", "--json").stdout)["running"] is True
