"""Tool calls of the agents that Reef knows, as a person reads them."""

import json
from typing import Any

import pytest

from reef_cli.blocks import Block
from reef_cli.toolcalls import read

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x = 1\n+x = 2\n*** Add File: b.md\n+new\n*** End Patch"


def call(name: str, **arguments: Any) -> tuple[str, list[Block]]:
    found = read(name, json.dumps(arguments))
    return found.head, found.blocks()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("bash", {"command": "ls -la"}),  # Pi, OpenCode, Mistral Vibe
        ("Bash", {"command": "ls -la"}),  # Claude Code
        ("exec_command", {"cmd": "ls -la"}),  # Codex
        ("terminal", {"command": "ls -la"}),  # Hermes
        ("run_shell_command", {"command": "ls -la"}),  # Qwen Code
        ("shell", {"command": ["bash", "-lc", "ls -la"]}),  # Codex before
        ("shell", {"command": ["ls", "-la"]}),
    ],
)
def test_a_command_is_a_command(name: str, arguments: dict[str, Any]) -> None:
    assert call(name, **arguments) == (f"{name} $ ls -la", [])


def test_a_long_command_stands_below_and_so_do_other_arguments() -> None:
    head, blocks = call("bash", command="cd x\nmake", timeout=20)
    assert head == "bash $ cd x …"
    assert blocks == [Block("cd x\nmake", "code", "bash"), Block("timeout: 20")]


@pytest.mark.parametrize(
    ("name", "arguments", "others"),
    [
        ("edit", {"path": "a.py", "edits": [{"oldText": "x = 1", "newText": "x = 2"}]}, 0),  # Pi
        ("edit", {"path": "a.py", "edits": '[{"oldText": "x = 1", "newText": "x = 2"}]'}, 0),
        ("edit", {"path": "a.py", "oldText": "x = 1", "newText": "x = 2"}, 0),  # Pi before
        ("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2", "replace_all": False}, 1),
        ("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "x = 1", "new_string": "x = 2"}]}, 0),
        ("edit", {"filePath": "a.py", "oldString": "x = 1", "newString": "x = 2"}, 0),  # OpenCode
        ("patch", {"mode": "replace", "path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}, 1),  # Hermes
    ],
)
def test_an_edit_is_a_diff(name: str, arguments: dict[str, Any], others: int) -> None:
    head, blocks = call(name, **arguments)
    assert head == f"{name} a.py"
    assert (blocks[0], len(blocks) - 1) == (Block("-x = 1\n+x = 2", "diff"), others)


@pytest.mark.parametrize("name", ["path", "file_path", "filePath"])
def test_what_is_written_is_all_new(name: str) -> None:
    head, blocks = call("write", **{name: "a.py", "content": "x = 1\ny"})
    assert (head, blocks) == ("write a.py", [Block("+x = 1\n+y", "diff")])


@pytest.mark.parametrize("name", ["input", "patch", "patchText"])
def test_a_patch_names_its_files_and_is_a_diff(name: str) -> None:
    assert call("apply_patch", **{name: PATCH}) == ("apply_patch src/a.py, b.md", [Block(PATCH, "diff")])


def test_a_patch_that_is_free_text_or_within_a_command() -> None:
    free = read("apply_patch", PATCH)
    assert (free.head, free.blocks()) == ("apply_patch src/a.py, b.md", [Block(PATCH, "diff")])
    _, blocks = call("shell", command=f"apply_patch <<'EOF'\n{PATCH}\nEOF")
    assert blocks[0].kind == "diff"


def test_other_arguments_are_lines_with_names() -> None:
    head, blocks = call("grep", pattern="def x", path="src", glob=None, options={"a": [1, 2], "b": "x" * 80})
    assert head == "grep src"
    assert [block.text for block in blocks][:2] == ["pattern: def x", "glob: null"]
    assert blocks[2].text.startswith('options: {\n  "a": [\n')
    assert call("task", prompt="one\ntwo") == ("task prompt one two", [Block("prompt:\n  one\n  two")])


def test_a_file_that_is_read_lends_its_language() -> None:
    assert read("read", '{"path": "src/a.py", "offset": 3}').file == "src/a.py"


@pytest.mark.parametrize("arguments", ["", "{}", "[1, 2]", '"text"', "{broken", "null", "[" * 100_000, '{"a": NaN}'])
def test_arguments_may_be_anything(arguments: str) -> None:
    found = read("odd", arguments)
    assert found.head.startswith("odd")
    assert len(found.head) < 300
    found.blocks()


@pytest.mark.parametrize("value", [None, 3, [], {}, [None], [{"oldText": 3}], True])
@pytest.mark.parametrize("name", ["command", "path", "edits", "content", "oldText", "input"])
def test_values_may_be_of_any_type(name: str, value: Any) -> None:
    call("odd", **{name: value})
    call("odd", **{"path": "a", name: value})
