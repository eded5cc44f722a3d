"""Typer's part: help from the table and the signatures, completion for every shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.core.errors import ExitCode
from reef_cli.commands import COMMANDS, Command, Group, find
from reef_cli.main import load, main
from reef_cli.parameters import bind

ROOT = Path(__file__).parents[2]
ALL: dict[str, Command] = {
    f"{name} {verb}".strip(): command
    for name, entry in COMMANDS.items()
    for verb, command in (entry.verbs.items() if isinstance(entry, Group) else [("", entry)])
}


@pytest.mark.parametrize("words", ALL)
def test_help_has_the_summary_the_examples_and_json(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = find(words.split())
    assert command is not None
    assert main([*words.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert command.summary in out
    assert "--json" in out
    assert all(f"    {example}" in out for example in command.examples)
    assert out.startswith(f"Usage: reef {words}")


def test_only_the_asking_and_rating_commands_and_the_dashboard_are_hot() -> None:
    hot = {words for words, command in ALL.items() if command.hot}
    assert hot == {"status", "good", "bad", "note", "undo", "env", "stop", "tui"}


def test_every_example_is_one_of_the_command() -> None:
    for words, command in ALL.items():
        assert any(f"reef {words}" in example for example in command.examples)


def test_a_hot_command_takes_the_same_words_through_typer() -> None:
    function = load(ALL["note"])
    assert bind(function, ["text", "rec_1", "--json"]) == {"text": "text", "record": "rec_1", "as_json": True}
    assert bind(function, ["--", "-text"]) is None  # and Typer takes these: see commands/test_feedback.py


def complete(shell: str, words: str) -> list[str]:
    environment = {
        "_REEF_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "reef_cli.main"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("reef tr", ["traces"]),
        ("reef jobs ", ["list", "show", "cancel"]),
        ("reef traces show --f", ["--full"]),
        ("reef env --shell f", ["fish"]),
    ],
)
def test_bash_completes(words: str, found: list[str]) -> None:
    assert complete("bash", words) == found


def test_an_empty_word_completes_to_every_command() -> None:
    assert complete("bash", "reef ") == list(COMMANDS)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete(shell: str) -> None:
    assert any("traces" in word for word in complete(shell, "reef tr"))


def test_the_completion_function_can_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reef_cli.main"],
        cwd=ROOT,
        env={**os.environ, "_REEF_COMPLETE": "source_bash"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "complete -o default -F _reef_completion reef" in done.stdout


def test_a_word_that_is_none_of_those_there_are_is_named_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["harness", "install", "--mode", "foo"]) == ExitCode.USAGE
    assert "error: Invalid value for '--mode': 'foo' is not one of 'isolated', 'overlay'." in capsys.readouterr().err


def test_an_agent_named_without_its_option_leads_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("install", "update", "uninstall"):
        assert main(["harness", verb, "claude-code"]) == ExitCode.USAGE
        assert f"hint: reef harness {verb} --adapter claude-code\n" in capsys.readouterr().err
    assert main(["releases", "unpin", "r3"]) == ExitCode.USAGE
    assert "hint: reef releases unpin --help\n" in capsys.readouterr().err
