"""Real environments, a real pip and real builds; only llama-cpp-python itself is a stand-in of a few lines."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.errors import ReefError
from daemon.engines import wheel
from daemon.engines.wheel import Installer, NoCompiler, wanted_version

VERSION = "0.3.36"
WORKS = "def llama_backend_init(): pass\ndef llama_print_system_info(): pass\n"
DIES = "import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n"

#: A build backend that prints what ninja prints, and then either makes the wheel or fails like a compiler.
BACKEND = """
import pathlib, sys, zipfile
FAIL = {fail!r}
def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = pathlib.Path(metadata_directory, "llama_cpp_python-{version}.dist-info")
    info.mkdir()
    (info / "METADATA").write_text({files!r}[f"{{info.name}}/METADATA"])
    return info.name
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    for step in range(1, 9):
        print(f"  [{{step}}/8] Building CXX object ggml.cpp.o", flush=True)
    if FAIL:
        sys.exit("ggml.cpp:1:1: error: expected unqualified-id")
    name = "llama_cpp_python-{version}-py3-none-any.whl"
    with zipfile.ZipFile(f"{{wheel_directory}}/{{name}}", "w") as archive:
        for path, text in {files!r}.items():
            archive.writestr(path, text)
    return name
"""


def contents(code: str) -> dict[str, str]:
    info = f"llama_cpp_python-{VERSION}.dist-info"
    return {
        "llama_cpp/__init__.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: llama-cpp-python\nVersion: {VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }


def make_wheel(folder: Path, code: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"llama_cpp_python-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in contents(code).items():
            archive.writestr(name, text)
    return path


def make_sdist(folder: Path, code: str = WORKS, *, fail: bool = False) -> str:
    """The source package in ``folder``; gives back its sha256."""
    root = f"llama_cpp_python-{VERSION}"
    project = (
        f'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        f'[project]\nname = "llama-cpp-python"\nversion = "{VERSION}"\n'
    )
    files = {
        "pyproject.toml": project,
        "backend.py": BACKEND.format(fail=fail, version=VERSION, files=contents(code)),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: llama-cpp-python\nVersion: {VERSION}\n",
    }
    path = folder / f"{root}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{root}/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment with nothing but this interpreter's own pip."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    import pip

    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (site / "pip").symlink_to(Path(pip.__file__).parent)
    return str(folder / "bin" / "python")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of every index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def installer(environment: str, tmp_path: Path, index: Path) -> Iterator[Installer]:
    yield Installer(VERSION, "0" * 64, "http://127.0.0.1:9/", tmp_path / "wheels", environment)
    subprocess.run([environment, "-m", "pip", "uninstall", "-qy", "llama-cpp-python"], check=True, capture_output=True)


def with_sdist(installer: Installer, sha256: str) -> Installer:
    return Installer(installer.version, sha256, installer.index, installer.cache, installer.python)


def test_the_version_is_the_one_of_pyproject_and_its_source_is_pinned() -> None:
    assert wanted_version() == VERSION
    assert wanted_version() in wheel.SDIST_SHA256


def test_an_environment_without_the_engine_says_so(installer: Installer) -> None:
    trouble = installer.trouble()
    assert trouble is not None
    assert "llama-cpp-python" in trouble


def test_a_kept_wheel_is_installed_and_then_nothing_is_left_to_do(installer: Installer) -> None:
    make_wheel(installer.kept, WORKS)
    assert installer.install().how == "kept"
    assert installer.trouble() is None
    assert installer.install().how == "present"


def test_a_kept_wheel_for_another_processor_is_discarded(installer: Installer, index: Path) -> None:
    kept = make_wheel(installer.kept, DIES)
    with pytest.raises(ReefError):
        installer.install()
    assert not kept.exists()
    assert installer.trouble() is not None


def test_what_dies_of_an_illegal_instruction_is_told_by_its_signal(installer: Installer) -> None:
    path = make_wheel(installer.cache / "odd", DIES)
    subprocess.run([installer.python, "-m", "pip", "install", "-q", "--no-deps", str(path)], check=True)
    assert installer.trouble() == "importing it died of signal 4: built for another processor"


def test_a_prebuilt_wheel_is_taken_and_kept(installer: Installer, index: Path) -> None:
    make_wheel(index, WORKS)
    assert installer.install().how == "index"
    assert [path.name for path in installer.kept.iterdir()] == [f"llama_cpp_python-{VERSION}-py3-none-any.whl"]


def test_a_prebuilt_wheel_that_does_not_run_gives_way_to_a_build(installer: Installer, index: Path) -> None:
    make_wheel(index, DIES)
    installer = with_sdist(installer, make_sdist(index))
    assert installer.install().how == "built"
    assert installer.trouble() is None


def test_a_build_shows_progress_and_is_kept(
    installer: Installer, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installer = with_sdist(installer, make_sdist(index))
    assert installer.install().how == "built"
    told = capsys.readouterr()
    assert [line.strip() for line in told.err.splitlines() if "compiled" in line] == [
        f"compiled {done} of 8" for done in (2, 4, 6, 8)
    ]
    assert told.out == ""
    assert len(list(installer.kept.glob("*.whl"))) == 1
    assert "[8/8] Building CXX object" in installer.log.read_text()


def test_a_failed_build_shows_its_end_and_where_the_rest_is(installer: Installer, index: Path) -> None:
    installer = with_sdist(installer, make_sdist(index, fail=True))
    with pytest.raises(ReefError, match="expected unqualified-id") as caught:
        installer.install()
    assert caught.value.hint == f"the whole log: {installer.log}"
    assert not installer.kept.exists()


def test_a_source_that_was_changed_is_never_built(installer: Installer, index: Path) -> None:
    make_sdist(index)
    with pytest.raises(ReefError, match="building llama-cpp-python failed"):
        installer.install()
    assert "HASHES" in installer.log.read_text()


def test_without_a_compiler_it_says_what_to_install_and_what_works_anyway(
    installer: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(NoCompiler) as caught:
        installer.install()
    assert caught.value.hint is not None
    assert "remote engines work without it" in caught.value.hint


def test_whoever_comes_second_waits_and_finds_the_work_done(installer: Installer, index: Path) -> None:
    installer = with_sdist(installer, make_sdist(index))
    outcomes: list[str] = []
    threads = [threading.Thread(target=lambda: outcomes.append(installer.install().how)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["built", "present"]


def test_other_processors_pythons_and_indexes_have_wheels_of_their_own(installer: Installer) -> None:
    other = Installer(VERSION, "0" * 64, "https://example.org/cu124", installer.cache, installer.python)
    assert installer.kept != other.kept
    assert installer.kept.name.startswith(f"{VERSION}-cp{sys.version_info.major}{sys.version_info.minor}-")


def test_the_command_reports_in_json_and_keeps_stdout_clean(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "daemon.engines.wheel", "--check", "--json"],
        capture_output=True, text=True, env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.count("\n") == 1
    assert ('"how": "present"' in done.stdout) == (done.returncode == 0)


def test_on_a_terminal_progress_is_one_line_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    meter = wheel.Meter()
    meter.show(1, 193)
    meter.show(2, 193)
    meter.close()
    assert "\n" not in screen.getvalue()
    assert "compiling 2/193 · 0:00" in screen.getvalue()


@pytest.mark.engine
def test_the_real_engine_is_present_in_the_environment_of_the_checks() -> None:
    started = time.monotonic()
    assert wheel.main(["--check"]) == 0
    assert time.monotonic() - started < 30
