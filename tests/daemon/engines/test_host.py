import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.engines.host import cpu_flags, missing_compiler


def test_the_flags_are_sorted_and_the_same_every_time() -> None:
    flags = cpu_flags().split()
    assert flags == sorted(flags)
    assert cpu_flags() == cpu_flags()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/cpuinfo")
def test_the_flags_are_the_processors() -> None:
    assert set(cpu_flags().split()) & {"sse2", "asimd", "rv64imafdc"}


def test_a_compiler_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "g++").write_text("#!/bin/sh\n")
    (tmp_path / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_compiler() is None


def test_a_compiler_that_cxx_names_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"{shutil.which('sh')} -flag")
    monkeypatch.setenv("PATH", "/nowhere")
    assert missing_compiler() is None


def test_without_a_compiler_the_command_that_brings_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    told = missing_compiler()
    assert told is not None
    assert "install" in told or "pacman" in told or "apk" in told


def test_this_modules_facts_need_no_package() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import daemon.engines.wheel"
    root = str(Path(__file__).parents[3])
    assert subprocess.run([sys.executable, "-I", "-S", "-c", code, root]).returncode == 0
