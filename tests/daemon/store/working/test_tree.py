"""What counts in a working copy, what is passed over, and what is told: nothing is followed, nothing is lost."""

import os
from pathlib import Path

import pytest

from daemon.store.working.tree import Seen, look

SKILL = "---\nname: greet\ndescription: How to greet.\n---\nSay hello.\n"


def put(root: Path, path: str, text: str = "x\n") -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    return target


def told(seen: Seen) -> dict[str, str]:
    return {problem.path: problem.message for problem in seen.problems}


def test_a_harness_is_read(tmp_path: Path) -> None:
    files = {
        "rules.md": "Be brief.\n", "skills/greet/SKILL.md": SKILL, "skills/greet/more.md": "More.\n",
        "prompts/sum.md": "Sum up.\n", "memory/team.md": "We use uv.\n", "config.json": "{}\n",
        "mcp.json": '{"mcpServers": {"x": {"command": "x"}}}\n', "extensions/pi/.hidden/a.ts": "export {}\n",
    }  # fmt: skip
    for path, text in files.items():
        put(tmp_path, path, text)
    assert look(tmp_path) == Seen(files)


@pytest.mark.parametrize(
    "name",
    [".rules.md.swp", "rules.md~", "#rules.md#", ".#rules.md", "4913", "rules.md.tmp", "rules.md.orig", ".DS_Store",
     ".idea/workspace.xml", ".git/config", "extensions/pi/.a.ts.swp", "extensions/pi/a.ts~"],
)  # fmt: skip
def test_an_editors_own_files_are_passed_over(tmp_path: Path, name: str) -> None:
    put(tmp_path, "rules.md")
    put(tmp_path, name)
    assert look(tmp_path) == Seen({"rules.md": "x\n"})


def test_what_a_release_holds_counts_whatever_it_is_called(tmp_path: Path) -> None:
    put(tmp_path, "extensions/pi/a.tmp")
    assert look(tmp_path, {"extensions/pi/a.tmp"}).files == {"extensions/pi/a.tmp": "x\n"}


def test_links_pipes_and_devices_are_refused_and_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    root = tmp_path / "copy"
    put(root, "memory/a.md")
    (root / "rules.md").symlink_to(secret)
    (root / "skills").symlink_to(tmp_path)
    os.mkfifo(root / "playbook.md")
    seen = look(root)
    assert seen.files == {"memory/a.md": "x\n"}
    assert {path for path, message in told(seen).items() if "no plain file" in message} == {
        "rules.md", "skills", "playbook.md",
    }  # fmt: skip
    assert seen.unread == {"rules.md", "skills", "playbook.md"}
    assert all(problem.blocks for problem in seen.problems)


def test_a_name_that_is_no_text_is_told_as_text(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.md")).touch()
    (tmp_path / os.fsdecode(b"\xfe")).symlink_to("nowhere")
    seen = look(tmp_path)
    assert [(one.path, one.blocks) for one in seen.problems] == [("\ufffd", False), ("\ufffd.md", False)]


def test_what_is_not_reached_is_not_taken_for_removed(tmp_path: Path) -> None:
    for number in range(2001):
        put(tmp_path, f"memory/m{number}.md")
    put(tmp_path, "rules.md")
    seen = look(tmp_path, ["memory/m0.md", "rules.md"])
    assert "rules.md" not in seen.files
    assert seen.unread == {"rules.md"}


def test_a_file_without_a_place_is_told_and_blocks_nothing(tmp_path: Path) -> None:
    put(tmp_path, "notes.txt")
    put(tmp_path, "skills/greet.md")
    seen = look(tmp_path)
    assert [(one.path, one.blocks) for one in seen.problems] == [("notes.txt", False), ("skills/greet.md", False)]
    assert "a harness has no such file" in seen.problems[0].message


@pytest.mark.parametrize(
    ("path", "text", "what"),
    [
        ("skills/greet/SKILL.md", "---\nname: greet\ndescription: Use when: asked\n---\nx\n", "not YAML"),  # B184
        ("skills/greet/SKILL.md", "no head\n", "begins with ---"),
        ("skills/greet/SKILL.md", SKILL.replace("greet", "other"), "calls itself 'other'"),
        ("skills/greet/more.md", "x\n", "no SKILL.md"),
        ("rules.md", "x" * 20_000, "at most 15000"),
        ("rules.md", "a\u202eb\n", "hidden character U+202E"),
        ("rules.md", "a\r\nb\r\n", "hidden character U+000D"),
        ("mcp.json", "{", "not JSON"),
        ("config.json", '{"model": 3}', "no model's name"),
        ("playbook.md", "- no rule\n", "not a rule"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_and_blocks(tmp_path: Path, path: str, text: str, what: str) -> None:
    """BUGS B184."""
    put(tmp_path, path, text)
    (problem,) = look(tmp_path).problems
    assert (problem.path, problem.blocks) == (path, True)
    assert what in problem.message


def test_b184_a_quoted_colon_in_a_description_is_fine(tmp_path: Path) -> None:
    """BUGS B184."""
    put(tmp_path, "skills/greet/SKILL.md", '---\nname: greet\ndescription: "Use when: asked"\n---\nx\n')
    assert look(tmp_path).problems == ()


def test_b186_rules_in_a_skills_body_are_no_second_head(tmp_path: Path) -> None:
    """BUGS B186."""
    put(tmp_path, "skills/greet/SKILL.md", f"{SKILL}\n---\n\nPart two: all of it.\n\n---\nEnd.\n")
    assert look(tmp_path).problems == ()


@pytest.mark.parametrize(
    "head",
    [
        "name: greet\ndescription: One line.",
        "description: One line.\nname: greet",
        "name: greet\ndescription: >\n  Two\n  lines.",
    ],
)
@pytest.mark.parametrize("gap", ["", "\n"])
def test_b187_heads_with_and_without_a_blank_line_are_found(tmp_path: Path, head: str, gap: str) -> None:
    """BUGS B187."""
    put(tmp_path, "skills/greet/SKILL.md", f"---\n{head}\n---\n{gap}Say hello.\n")
    assert look(tmp_path).problems == ()


def test_no_text_and_too_much(tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_bytes(b"caf\xe9")
    put(tmp_path, "memory/a.md", "x" * 1_000_000)
    seen = look(tmp_path)
    assert told(seen)["rules.md"] == "byte 3 is not UTF-8 text"
    assert "at most 15000" in told(seen)["memory/a.md"]
    assert seen.unread == {"rules.md"}


def test_a_folder_that_is_far_too_full_is_looked_at_only_so_far(tmp_path: Path) -> None:
    for number in range(2100):
        (tmp_path / f"{number:05}").touch()
    assert "2000 files" in look(tmp_path).problems[-1].message
