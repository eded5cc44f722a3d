"""What a harness may hold: text that an agent reads, and nothing that can act (SECURITY 7).

Recipes write harnesses out of what they have read, so capability is cut here rather than judged: a few Markdown files,
a closed list of fields, no hidden characters, bounded lengths. Loosening this lets a web page that an agent once read
run code on the person's machine.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from daemon.core import playbook
from daemon.core.errors import RecipeError
from daemon.core.plaintext import hidden

_NAME: Final = r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?"
_SKILL: Final = re.compile(rf"skills/({_NAME})/SKILL\.md")
_PROMPT: Final = re.compile(rf"prompts/{_NAME}\.md")
_PLACES: Final = "playbook.md, rules.md, skills/NAME/SKILL.md and prompts/NAME.md"
#: Bytes a file may have, files a harness may have.
_LARGEST: Final = 15_000
_LARGEST_PLAYBOOK: Final = 64_000
_MOST: Final = 200
_LONGEST_DESCRIPTION: Final = 1024
_FIELDS: Final = {"name", "description", "triggers"}

#: Marks of what runs by itself in one agent or another, and of what is there to be decoded rather than read.
_ACTS: Final = (
    (re.compile(r"!`"), "runs a command where a prompt is expanded (!`…`)"),
    (re.compile(r"\b(?:curl|wget)\s+\S[^\n|]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"), "pipes a download into a shell"),
    (re.compile(r"[A-Za-z0-9+/]{160,}={0,2}"), "holds a long block of encoded data"),
)


def check(path: str, text: str) -> None:
    """Return when this file may be in a harness. Raises RecipeError that names the file and what is wrong with it."""
    skill = _SKILL.fullmatch(path)
    if not (path in (playbook.PATH, "rules.md") or skill or _PROMPT.fullmatch(path)):
        raise RecipeError(f"harness/{path}: this version releases text only: {_PLACES}", hint=_why(path))
    size = len(text.encode("utf-8", "replace"))
    limit = _LARGEST_PLAYBOOK if path == playbook.PATH else _LARGEST
    if size > limit:
        raise RecipeError(f"harness/{path}: {size} bytes, at most {limit} are read by an agent")
    if (at := hidden(text, keep="\n\t")) is not None:
        line = text.count("\n", 0, at) + 1
        raise RecipeError(
            f"harness/{path}, line {line}: the hidden character U+{ord(text[at]):04X}",
            hint="agents read what a person cannot see there; write it without",
        )
    for pattern, what in _ACTS:
        if found := pattern.search(text):
            raise RecipeError(f"harness/{path}: {what}: {found[0][:60]!r}", hint="say it in words")
    if path == playbook.PATH:
        try:
            playbook.parse(text)
        except ValueError as error:
            raise RecipeError(f"harness/{path}: {error}") from None
    elif skill:
        _check_skill(path, skill[1], text)


def check_count(files: Mapping[str, str]) -> None:
    if len(files) > _MOST:
        raise RecipeError(f"the harness has {len(files)} files, at most {_MOST} are let in")


def _why(path: str) -> str:
    if path.endswith((".ts", ".js", ".mjs", ".py", ".sh")) or "hook" in path or "extension" in path:
        return "extensions, hooks and scripts can act on their own: put them in by hand"
    if path.endswith((".json", ".toml", ".yaml", ".yml")):
        return "settings, permissions and MCP servers are the person's own to change"
    return "names are lower-case letters, digits and dashes"


def _check_skill(path: str, folder: str, text: str) -> None:
    found = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    try:
        head: Any = yaml.safe_load(found[1]) if found else None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RecipeError(f"harness/{path}: its head is not YAML: {error}") from None
    if not isinstance(head, dict):
        raise RecipeError(f"harness/{path}: a skill begins with --- and its name and description")
    if more := {str(key) for key in head} - _FIELDS:
        raise RecipeError(f"harness/{path}: {sorted(more)[0]!r} is not let in; a skill has name, description, triggers")
    name, description, triggers = head.get("name"), head.get("description"), head.get("triggers", [])
    if name != folder:
        raise RecipeError(f"harness/{path}: the skill calls itself {name!r}, its folder is {folder!r}")
    if not isinstance(description, str) or not 0 < len(description) <= _LONGEST_DESCRIPTION:
        raise RecipeError(f"harness/{path}: a description of 1 to {_LONGEST_DESCRIPTION} characters is needed")
    if not isinstance(triggers, list) or not all(isinstance(word, str) for word in triggers):
        raise RecipeError(f"harness/{path}: triggers is not a list of words")
