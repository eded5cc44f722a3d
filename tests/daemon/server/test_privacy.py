"""What must not be recorded: paused, or from a folder that is denied. In doubt it is not recorded."""

import asyncio
import os
from pathlib import Path

import pytest

from daemon.core.paths import Home
from daemon.server import privacy as module
from daemon.server.privacy import Pause, Privacy, denied


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "work" / "client"
    (made / ".git").mkdir(parents=True)
    (made / "src" / "deep").mkdir(parents=True)
    return made


async def test_nothing_is_held_back_at_first(home: Home, repository: Path) -> None:
    privacy = Privacy(home, ())
    assert await privacy.unrecorded(None) is None
    assert await privacy.unrecorded(str(repository)) is None


async def test_a_pause_outlives_the_daemon_and_ends_when_told(home: Home) -> None:
    Pause(home).begin(None)
    again = Privacy(home, ())
    assert await again.unrecorded(None) == "paused"
    again.pause.end()
    assert await again.unrecorded(None) is None
    assert not Pause(home).on()


async def test_a_pause_with_an_end_ends_by_itself_and_for_good(home: Home) -> None:
    pause = Pause(home)
    pause.begin(0.05)
    assert pause.on()
    async with asyncio.timeout(60):
        while pause.on():
            await asyncio.sleep(0.01)
    assert not home.paused.exists()
    assert pause.until_ns() is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"until_ns": "soon"}', b'{"until_ns": true}'])
def test_a_pause_whose_file_is_damaged_stays(home: Home, content: bytes) -> None:
    home.paused.write_bytes(content)
    pause = Pause(home)
    assert pause.on()
    pause.end()
    assert not pause.on()


@pytest.mark.parametrize(
    ("pattern", "cwd", "held"),
    [
        ("/work/secret", "/work/secret", True),
        ("/work/secret", "/work/secret/deep/below", True),
        ("/work/secret", "/work/secrets", False),
        ("*/client-*", "/home/me/client-a/src", True),
        ("*/client-*", "/home/me/other", False),
        ("~/private", "~/private/x", True),
    ],
)
async def test_a_pattern_of_the_configuration_means_a_folder_and_all_below_it(
    home: Home, pattern: str, cwd: str, held: bool
) -> None:
    assert await Privacy(home, (pattern,)).unrecorded(str(Path(cwd).expanduser())) == ("denied" if held else None)


async def test_a_link_into_a_denied_folder_is_denied(home: Home, repository: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere"
    link.symlink_to(repository)
    assert await Privacy(home, (str(repository),)).unrecorded(str(link / "src")) == "denied"


@pytest.mark.parametrize("below", ["", "src", "src/deep", "not/yet/there"])
@pytest.mark.parametrize("content", ["", "# everything\n", "*\n", ".\n"])
def test_a_reefignore_without_a_pattern_means_the_whole_repository(repository: Path, content: str, below: str) -> None:
    (repository / ".reefignore").write_text(content)
    assert denied(repository / below, ())
    assert not denied(repository.parent, ())


def test_a_reefignore_with_patterns_means_what_they_match(repository: Path) -> None:
    (repository / ".reefignore").write_text("\n# only these\nsrc/deep/\nsec*\n")
    assert denied(repository / "src" / "deep" / "er", ())
    assert denied(repository / "secret", ())
    assert not denied(repository / "src", ())
    assert not denied(repository, ())


def test_a_reefignore_above_the_repository_is_not_the_repositorys(repository: Path) -> None:
    (repository.parent / ".reefignore").write_text("")
    assert not denied(repository / "src", ())
    assert denied(repository.parent / "no-repository", ())


async def test_a_reefignore_that_cannot_be_read_denies(home: Home, repository: Path) -> None:
    os.mkfifo(repository / ".reefignore")
    assert await Privacy(home, ()).unrecorded(str(repository / "src")) == "denied"
    (repository / ".reefignore").unlink()
    (repository / ".reefignore").symlink_to("/etc/passwd")
    assert await Privacy(home, ()).unrecorded(str(repository)) == "denied"


async def test_a_disk_that_hangs_holds_no_request_for_long(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.05)
    wait = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hangs(*_: object) -> bool:
        asyncio.run_coroutine_threadsafe(wait.wait(), loop).result()
        return False

    monkeypatch.setattr(module, "denied", hangs)
    assert await asyncio.wait_for(Privacy(home, ()).unrecorded("/mnt/gone"), 60) == "denied"
    wait.set()


@pytest.mark.parametrize("cwd", ["relative", "", "\0", "C:\\work"])
async def test_what_is_no_path_is_nobodys_folder(home: Home, cwd: str) -> None:
    assert await Privacy(home, ("*",)).unrecorded(cwd) in (None, "denied")


async def test_a_changed_list_counts_soon(home: Home, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REMEMBERED_SECONDS", 0.0)
    privacy = Privacy(home, ())
    assert await privacy.unrecorded(str(repository)) is None
    (repository / ".reefignore").write_text("")
    assert await privacy.unrecorded(str(repository)) == "denied"
