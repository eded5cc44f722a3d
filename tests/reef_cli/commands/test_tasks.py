"""`reef tasks` as a person uses it."""

import json
from pathlib import Path

import pytest

from daemon.core.errors import ExitCode
from tests.reef_cli.conftest import Reef


def prompts(cli: Reef, *words: str) -> list[str]:
    return [item["prompt"] for item in cli("tasks", "list", "--json", *words).json()["items"]]


def test_add_list_remove(cli: Reef) -> None:
    added = cli("tasks", "add", "What is rain?", "--form", "one_sentence", "--scenario", "a")
    assert added.code == 0
    word, id, *rest = added.out.split()
    assert (word, " ".join(rest)) == ("added", "gate one_sentence What is rain?")
    shown = cli("tasks", "list", "--scenario", "a").out.splitlines()
    assert shown[0].split() == ["id", "set", "check", "prompt"]
    assert shown[1].split()[1:3] == ["gate", "one_sentence"]
    assert id.startswith(shown[1].split()[0])
    assert cli("tasks", "remove", id[:-2], "--scenario", "a").out == f"removed  {id}  What is rain?\n"
    assert prompts(cli, "--scenario", "a") == []
    gone = cli("tasks", "remove", id, "--json")
    assert (gone.code, gone.error()["kind"]) == (ExitCode.NOT_FOUND, "not_found")


def test_every_option_arrives(cli: Reef) -> None:
    told = cli(
        "tasks", "add", "Undo my last commit", "--expression", r"git (reset|revert)", "--set", "regression",
        "--critical", "--max-tokens", "64", "--scenario", "b", "--json",
    ).json()  # fmt: skip
    assert (told["set"], told["critical"], told["max_tokens"], told["created"]) == ("regression", True, 64, True)
    assert told["check"] == {"form": None, "expression": "git (reset|revert)", "command": None}
    shown = cli("tasks", "list", "--scenario", "b").out
    assert "regression critical" in shown
    assert "expression git (reset|revert)" in shown


def test_the_same_task_again_is_merged_and_says_so(cli: Reef) -> None:
    cli("tasks", "add", "again", "--form", "json", "--scenario", "c")
    again = cli("tasks", "add", "again", "--form", "json", "--scenario", "c")
    assert again.out.startswith("merged  tsk_")
    assert "1 task of 1 had been there already" in again.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("x", "--form", "one_sentense"), "no form is called 'one_sentense'"),
        (("x", "--expression", "("), "'(' is not a regular expression"),
        ((" ", "--form", "json"), "the prompt ' ' says nothing"),
        (("x",), "a task needs a check"),
        (("x", "--form", "json", "--command", "true"), "the check has form and command"),
        (("x", "--form", "json", "--critical"), "critical is for regression tasks"),
        ((), "give a prompt, --from or --file"),
        (("x", "--file", "y"), "give a prompt, --from or --file"),
        (("--file", "/nonexistent.yaml"), "cannot read /nonexistent.yaml"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(cli: Reef, words: tuple[str, ...], says: str) -> None:
    result = cli("tasks", "add", *words, "--json")
    assert result.code == ExitCode.USAGE
    assert says in result.error()["message"]


def test_a_yaml_file_of_prompts_and_tasks(cli: Reef, tmp_path: Path) -> None:
    file = tmp_path / "tasks.yaml"
    file.write_text(
        "- What is rain?\n"
        '- {prompt: "What is snow?", form: json, set: regression}\n'
        '- {prompt: "What is fog?", expression: fog}\n'
        "- What is rain?\n"
    )
    added = cli("tasks", "add", "--file", str(file), "--form", "one_sentence", "--scenario", "d")
    assert [line.split()[0] for line in added.out.splitlines()] == ["added", "added", "added", "merged"]
    items = cli("tasks", "list", "--scenario", "d", "--json").json()["items"][::-1]
    assert [(item["prompt"], item["set"], item["check"]) for item in items] == [
        ("What is rain?", "gate", {"form": "one_sentence", "expression": None, "command": None}),
        ("What is snow?", "regression", {"form": "json", "expression": None, "command": None}),
        ("What is fog?", "gate", {"form": None, "expression": "fog", "command": None}),
    ]


def test_a_file_of_json_lines(cli: Reef, tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"prompt": "one", "check": {"form": "json"}}\n\n"two"\n')
    added = cli("tasks", "add", "--file", str(file), "--form", "upper_case", "--scenario", "e", "--json").json()
    assert [(item["prompt"], item["check"]["form"]) for item in added["items"]] == [
        ("one", "json"), ("two", "upper_case")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("t.yaml", "- one\n- {prompt: two, form: nonsense}\n", "task 2: no form is called 'nonsense'; none was added"),
        ("t.yaml", "a: b", "is not a list of tasks"),
        ("t.yaml", "- [", "is not YAML"),
        ("t.yaml", "- 3", "an entry is a prompt or a mapping, got 3"),
        ("t.jsonl", '"fine"\nnot json', "line 2 is not JSON"),
        ("t.yaml", "- {prompt: x, frm: json}", "unknown field 'frm'"),
        ("t.yaml", "[]", "not a list of 1 to 1000"),
    ],
)
def test_a_file_with_a_mistake_adds_nothing(cli: Reef, tmp_path: Path, name: str, text: str, says: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    result = cli("tasks", "add", "--file", str(file), "--form", "json", "--scenario", "f", "--json")
    assert result.code == ExitCode.USAGE
    assert says in result.error()["message"]
    assert prompts(cli, "--scenario", "f") == []


def test_a_beginning_of_two_tasks_is_refused(cli: Reef) -> None:
    for word in ("one", "two"):
        cli("tasks", "add", word, "--form", "json", "--scenario", "g")
    result = cli("tasks", "remove", "tsk_", "--scenario", "g", "--json")
    assert (result.code, result.error()["kind"]) == (ExitCode.USAGE, "usage")
    assert cli("tasks", "remove", "nothing", "--scenario", "g").code == ExitCode.NOT_FOUND


def test_a_prompt_cannot_act_on_the_terminal(cli: Reef) -> None:
    cli("tasks", "add", "red \x1b[31m and \u202e", "--form", "json", "--scenario", "h")
    shown = cli("tasks", "list", "--scenario", "h").out
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_an_empty_list_says_what_to_do(cli: Reef) -> None:
    assert "reef tasks add" in cli("tasks", "list", "--scenario", "none").err
    assert json.loads(cli("tasks", "list", "--scenario", "none", "--json").out) == {"items": []}
