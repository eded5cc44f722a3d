"""Keys come from private places, and what is said of them never holds one."""

from pathlib import Path

import pytest

from daemon.core import keys
from daemon.core.errors import EngineError


@pytest.mark.parametrize("source", ["agent", "none", "keyring:x", "file:/x", "env:X"])
def test_what_a_source_looks_like(source: str) -> None:
    assert keys.is_source(source)


@pytest.mark.parametrize("source", ["", "sk-live-1234", "env:", "file", "vault:x"])
def test_what_is_no_source(source: str) -> None:
    assert not keys.is_source(source)


def test_a_file_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-live-1234")
    file.chmod(0o640)
    with pytest.raises(EngineError, match="can be read by others") as caught:
        keys.read(f"file:{file}")
    assert caught.value.hint == f"chmod 600 {file}"
    file.chmod(0o600)
    assert keys.read(f"file:{file}") == "sk-live-1234"


def test_a_keyring_that_is_not_there_or_empty_is_told_with_the_command_that_fills_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="secret-tool is not installed"):
        keys.read("keyring:far")
    tool = tmp_path / "secret-tool"
    tool.write_text("#!/bin/sh\nexit 1\n")
    tool.chmod(0o700)
    with pytest.raises(EngineError, match="holds none called 'far'") as caught:
        keys.read("keyring:far")
    assert caught.value.hint == "secret-tool store --label 'Reef far' service reef account far"
