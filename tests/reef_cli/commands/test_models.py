"""`reef models list · add · use · remove`, on small GGUF files."""

import hashlib
from pathlib import Path

import pytest

from daemon.core.errors import ExitCode
from reef_cli.commands.models import _coming
from tests.fakes import gguf
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf.make(licence="mit", seed=1))
    return path


def test_add_from_a_relative_path_shows_what_it_is(
    served: Served, cli: Reef, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    result = cli("models", "add", "tiny.gguf", "--name", "shown")
    assert result.code == 0, result.err
    assert "licence  mit" in result.out
    assert f"sha256   {hashlib.sha256(file.read_bytes()).hexdigest()}" in result.out
    assert "4 kB" in result.out


def test_list_use_and_remove(served: Served, cli: Reef, tmp_path: Path) -> None:
    for number, name in enumerate(("first", "second")):
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(gguf.make(seed=10 + number))
        assert cli("models", "add", str(path), "--name", name, "--use", "--json").json()["model"]["name"] == name
    state = {model["name"]: model["active"] for model in cli("models", "list", "--json").json()["items"]}
    assert (state["first"], state["second"]) == (False, True)
    assert cli("models", "use", "first", "--json").json()["model"]["active"] is True
    row = next(line for line in cli("models", "list").out.splitlines() if line.startswith("first"))
    assert "answers" in row
    assert "apache-2.0" in row
    assert cli("models", "remove", "second").out == f"removed second; its file stays at {tmp_path / 'second.gguf'}\n"
    assert "second" not in cli("models", "list").out


def test_what_is_being_added_is_told() -> None:
    told = {"source": "hf:a/b", "phase": "download", "done": 30, "total": 200}
    assert _coming(told) == "being added: hf:a/b, download 15%"
    assert _coming({**told, "phase": "look up", "total": 0}).endswith("look up")


def test_the_model_that_answers_alone_is_asked_about(served: Served, cli: Reef, file: Path) -> None:
    for model in sorted(cli("models", "list", "--json").json()["items"], key=lambda model: bool(model["active"])):
        assert cli("models", "remove", model["name"], "--yes").code == 0
    cli("models", "add", str(file), "--name", "alone")
    refused = cli("models", "remove", "alone", "--json")
    assert (refused.code, refused.error()["hint"]) == (ExitCode.USAGE, "add --yes")
    assert [model["name"] for model in cli("models", "list", "--json").json()["items"]] == ["alone"]
    assert cli("models", "remove", "alone", "-y").out.startswith("removed alone")


def test_what_cannot_be_added_is_an_error_of_its_kind(served: Served, cli: Reef, tmp_path: Path) -> None:
    (tmp_path / "not.gguf").write_bytes(b"MZ" * 100)
    result = cli("models", "add", str(tmp_path / "not.gguf"), "--json")
    assert result.code != 0
    assert result.out == ""
    assert "not.gguf" in result.error()["message"]


@pytest.mark.parametrize("verb", ["use", "remove"])
def test_an_unknown_model_is_not_found(served: Served, cli: Reef, verb: str) -> None:
    assert cli("models", verb, "no such/model").code == ExitCode.NOT_FOUND


def test_list_says_where_each_name_goes(served: Served, cli: Reef) -> None:
    lines = cli("models", "list").out.splitlines()
    heading = next(i for i, line in enumerate(lines) if line.startswith("asked for"))
    assert lines[heading + 1 :] == ["*          p (key: agent)"]
