"""What a harness may hold. Of a recipe: text that an agent reads, and nothing that can act (SECURITY 7).

Recipes write harnesses out of what they have read, so capability is cut here rather than judged: a few Markdown files,
a closed list of fields, no hidden characters, bounded lengths. Loosening this lets a web page that an agent once read
run code on the person's machine. A person may propose every kind of `daemon.core.harness`; what can act is released
only by their yes to it.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

import yaml

from daemon.core import harness, playbook
from daemon.core.errors import RecipeError
from daemon.core.harness import BELOW, Entry, Kind
from daemon.core.plaintext import hidden, invisible
from daemon.store.releases import lfs

_SKILL_FILE: Final = "SKILL.md"
_PLACES: Final = (
    "playbook.md, rules.md, memory/NAME.md, skills/NAME/SKILL.md (and skills/NAME/*.md) and prompts/NAME.md"
)
#: Bytes a file may have, files a harness may have.
_LARGEST: Final = 15_000
_LARGER: Final = {Kind.PLAYBOOK: 64_000, Kind.EXTENSION: 200_000}
_MOST: Final = 200
_LONGEST_DESCRIPTION: Final = 1024
_FIELDS: Final = {"name", "description", "triggers"}
#: Of a prompt: in an agent's others a tool is allowed, a hook is started, a model is chosen.
_PROMPT_FIELDS: Final = {"description", "argument-hint"}

#: Marks of what runs by itself in one agent or another, and of what is there to be decoded rather than read.
_ACTS: Final = (
    (re.compile(r"!`|!\{"), "runs a command where a prompt is expanded (!`…` or !{…})"),
    (re.compile(r"\b(?:curl|wget)\s+\S[^\n|]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"), "pipes a download into a shell"),
    (re.compile(r"[A-Za-z0-9+/]{160,}={0,2}"), "holds a long block of encoded data"),
)


def check_place(path: str, *, person: bool = False) -> Entry:
    """What the file is, when a recipe may propose or remove it, or a person. Raises RecipeError that names it."""
    found = harness.entry(path)
    if found is None and person:
        raise RecipeError(f"harness/{path}: a harness has no such file", hint=f"it holds {harness.PLACES}")
    if found is None or not (found.kind.is_text or person):
        raise RecipeError(f"harness/{path}: a recipe proposes text only: {_PLACES}", hint=_why(path))
    return found


def check(path: str, text: str, *, person: bool = False) -> None:
    """Return when this file may be in a harness. Raises RecipeError that names the file and what is wrong with it."""
    found = check_place(path, person=person)
    size = len(text.encode("utf-8", "replace"))
    limit = _LARGER.get(found.kind, _LARGEST)
    if size > limit:
        raise RecipeError(f"harness/{path}: {size} bytes, at most {limit} are read by an agent")
    if (at := hidden(text, keep="\n\t")) is not None:
        line = text.count("\n", 0, at) + 1
        raise RecipeError(
            f"harness/{path}, line {line}: the hidden character U+{ord(text[at]):04X}",
            hint="agents read what a person cannot see there; write it without",
        )
    if found.kind.is_text:
        _check_inert(path, text)
    try:
        _check_form(found, text)
    except ValueError as error:
        raise RecipeError(f"harness/{path}: {error}") from None


def check_tree(paths: Iterable[str]) -> None:
    """Return when a snapshot's ``paths`` make a harness together. Raises RecipeError."""
    files = {path.removeprefix(BELOW) for path in paths if path.startswith(BELOW)}
    if len(files) > _MOST:
        raise RecipeError(f"the harness has {len(files)} files, at most {_MOST} are let in")
    for path in sorted(files):
        found = harness.entry(path)
        if found and found.kind is Kind.SKILL and f"skills/{found.name}/{_SKILL_FILE}" not in files:
            raise RecipeError(f"harness/{path}: the skill has no {_SKILL_FILE}")
    if two := harness.clash(files):
        raise RecipeError(f"harness/{two[1]}: beside harness/{two[0]} some file systems have no place for it")


def _check_inert(path: str, text: str) -> None:
    for pattern, what in _ACTS:
        if found := pattern.search(text):
            raise RecipeError(f"harness/{path}: {what}: {found[0][:60]!r}", hint="say it in words")


def _check_form(found: Entry, text: str) -> None:
    """Raises ValueError, RecipeError."""
    if found.kind is Kind.PLAYBOOK:
        playbook.parse(text)
    elif found.kind is Kind.CONFIG:
        harness.config(text)
    elif found.kind is Kind.MCP:
        harness.mcp(text)
    elif found.kind is Kind.EXTENSION and lfs.is_large(found.path):
        raise ValueError("a file of this name is weights in a release")
    elif found.kind is Kind.PROMPT:
        _check_prompt(found.path, text)
    elif found.file == _SKILL_FILE:
        _check_skill(found.path, found.name, text)


def _why(path: str) -> str:
    if path.endswith((".ts", ".js", ".mjs", ".py", ".sh")) or "hook" in path or "extension" in path:
        return "extensions, hooks and scripts can act on their own: put them in by hand"
    if path.endswith((".json", ".toml", ".yaml", ".yml")):
        return "settings, permissions and MCP servers are the person's own to change"
    return "names are lower-case letters, digits and dashes"


def _head(path: str, text: str) -> Any:
    """What stands between the two lines of ``---`` at the beginning; None without them."""
    found = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    try:
        head = yaml.safe_load(found[1]) if found else None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RecipeError(f"harness/{path}: its head is not YAML: {error}") from None
    for value in head.values() if isinstance(head, dict) else ():
        for said in value if isinstance(value, list) else [value]:
            if char := invisible(str(said), keep="\n\t"):  # which YAML can write as \\u202E
                raise RecipeError(f"harness/{path}: its head says the hidden character {char}")
    return head


def _check_prompt(path: str, text: str) -> None:
    if not text.lstrip().startswith("---"):
        return
    head = _head(path, text)
    if not isinstance(head, dict) or not all(isinstance(value, str) for value in head.values()):
        raise RecipeError(f"harness/{path}: a prompt's head is lines of NAME: TEXT between two of ---")
    if more := {str(key) for key in head} - _PROMPT_FIELDS:
        raise RecipeError(
            f"harness/{path}: {min(more)!r} is not let in; a prompt's head has {', '.join(sorted(_PROMPT_FIELDS))}",
            hint="what an agent may do, and with which model, is the person's own to change",
        )


def _check_skill(path: str, folder: str, text: str) -> None:
    head = _head(path, text)
    if not isinstance(head, dict):
        raise RecipeError(f"harness/{path}: a skill begins with ---, then name: {folder} and description: …, then ---")
    if more := {str(key) for key in head} - _FIELDS:
        raise RecipeError(f"harness/{path}: {sorted(more)[0]!r} is not let in; a skill has name, description, triggers")
    name, description, triggers = head.get("name"), head.get("description"), head.get("triggers", [])
    if name != folder:
        raise RecipeError(f"harness/{path}: the skill calls itself {name!r}, its folder is {folder!r}")
    if not isinstance(description, str) or not 0 < len(description) <= _LONGEST_DESCRIPTION:
        raise RecipeError(f"harness/{path}: a description of 1 to {_LONGEST_DESCRIPTION} characters is needed")
    if description.split() != harness.description(text).split():
        raise RecipeError(
            f"harness/{path}: agents read another description than {description[:60]!r}",
            hint='say it once, as description: "…", on its line',
        )
    if not isinstance(triggers, list) or not all(isinstance(word, str) for word in triggers):
        raise RecipeError(f"harness/{path}: triggers is not a list of words")
