"""A release's harness as one agent reads it: (tree, adapter, mode) → {path: text}. Pure.

The tree's parts go to the places that the mode names. A part without a place is left out, but that a prompt becomes a
skill: the same words, found by the agent instead of called by the person. An agent that looks for no skills is told in
its rules which there are, and where.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from adapters import delivery, template
from adapters.agent import Adapter, Mode
from adapters.delivery import Delivery
from adapters.described import OURS
from daemon.core.errors import Untrusted

if TYPE_CHECKING:
    from daemon.core.harness import Entry, Server

_T = TypeVar("_T")
#: What the daemon makes of it is the person's choice.
_MODEL: Final = "default"
#: None where a release does not say.
_UNSAID: Final = ("REEF_MODEL", "REEF_THINKING", "REEF_MCP", "REEF_MCP_LIST")
_SKILL: Final = "/SKILL.md"
_LIST: Final = (
    "Skills are instructions for one kind of task each. Before a task that one of them fits, read its file whole and"
    " follow it; files that it names lie beside it."
)
#: Bytes that they may take, and the rules without them, where all is told by a word of a command or a variable: Linux
#: takes 128 KiB of one (execve(2)).
_LONGEST_LIST: Final = 32 << 10
_LONGEST_RULES: Final = 95 << 10


def values(told: Delivery, adapter: Adapter, skills: str = "") -> dict[str, Any]:
    """What the templates say of a release. ``told`` is `delivery.checked` already; ``skills``: see `listed`. Raises
    Untrusted for a tree that is none."""
    alone = None if any(path.startswith(f"extensions/{adapter.name}/") for path in told.files) else "*"
    said = {"REEF_RELEASE": told.release_id, "REEF_RULES": "", "REEF_MODEL_NAME": _MODEL, "REEF_ALONE": alone}
    made: dict[str, Any] = {**said, **dict.fromkeys(_UNSAID), "REEF_THINKS": False}
    if not told.files:
        return made
    from daemon.core import harness, playbook  # not at import: a release without files needs none of it

    config = _read(told, harness.CONFIG, harness.config, harness.Config())
    nobody: tuple[Server, ...] = ()
    servers = _read(told, harness.MCP, harness.mcp, nobody)
    rules = _read(told, playbook.PATH, lambda text: playbook.told(playbook.parse(text)), "")
    facts = [text for path, text in sorted(told.files.items()) if path.startswith("memory/")]
    parts = [text.strip() for text in (told.files.get(harness.RULES, ""), *facts, rules, skills) if text.strip()]
    brought = {one.name: _server(one, adapter) for one in servers} if adapter.mcp else {}
    return made | {
        "REEF_RULES": "\n\n".join([*parts, harness.mark(told.release_id)]) if parts else "",
        "REEF_MODEL": config.model,
        "REEF_MODEL_NAME": config.model or _MODEL,
        "REEF_THINKING": adapter.thinking.get(config.thinking or ""),
        "REEF_THINKS": config.thinking not in (None, harness.THINKING[0]),
        "REEF_MCP": brought or None,
        "REEF_MCP_LIST": list(brought.values()) or None,
    }


def rendered(told: Delivery, adapter: Adapter, mode: Mode) -> dict[str, str]:
    """Path → text of the read-only part of a session's configuration."""
    said = values(told, adapter)
    _check_size(told, said["REEF_RULES"], adapter, mode)
    files = _parts(told, adapter, mode) if told.files else {}
    files |= {name: template.filled(source, said, adapter.folder) for name, source in mode.release.items()}
    made = {path: text for path, text in files.items() if text.strip()}
    _check_places(told, made)
    return made


def listed(files: Mapping[str, str], folder: Path) -> str:
    """What an agent that looks for no skills is told of those in ``files``, which are `rendered` and lie in ``folder``:
    the name of each, what it is for, and where to read it when that comes up; only where they lie, where that would be
    too long. Empty where there are none."""
    from daemon.core.harness import description

    found = {path: text for path, text in sorted(files.items()) if path.endswith(_SKILL)}
    lines = [f"- {path.split('/')[-2]}: {description(text)} ({folder / path})" for path, text in found.items()]
    if _size("\n".join(lines)) > _LONGEST_LIST:
        lines = [f"There are {len(found)}, each with what it is for in its head: {folder}/skills/*{_SKILL}"]
    return "\n".join([_LIST, *lines]) if lines else ""


def left_out(told: Delivery, adapter: Adapter, mode: Mode) -> str:
    """A sentence about what of a release does not reach this agent: what no template of the mode says, or what this
    version does not know. Empty where all does."""
    if not told.files:
        return ""
    from daemon.core import harness

    said, placed = values(told, adapter), template.places([mode, adapter.model], adapter.folder)
    found = [path for path in sorted(told.files) if _is_left_out(path, adapter, mode)]
    if harness.MCP in told.files and not (placed & {"REEF_MCP", "REEF_MCP_LIST"} and said["REEF_MCP"]):
        found.append(harness.MCP)
    config = _read(told, harness.CONFIG, harness.config, harness.Config())
    if config.model and not placed & {"REEF_MODEL", "REEF_MODEL_NAME"}:
        found.append(f"model {config.model}")
    if config.thinking and not (placed & {"REEF_THINKING", "REEF_THINKS"} and said["REEF_THINKING"]):
        found.append(f"thinking {config.thinking}")
    what = f"{adapter.title} does not take this of release {delivery.short(told.release_id)}"
    return f"{what}: {', '.join(found)}" if found else ""


def models(form: Any, names: Sequence[str], context: int, said: Mapping[str, Any]) -> dict[str, Any]:
    """More values: the daemon's models, and the one that the release names, as this agent's configuration lists them in
    ``form``, see `Adapter.listing`; ``context`` in tokens. ``said``: `values`."""
    wanted = [said["REEF_MODEL"]] if said["REEF_MODEL"] else []
    sizes = {"REEF_MODEL_CONTEXT": context, "REEF_MODEL_OUTPUT": context // 4}
    listed = {}
    for name in (*names, *wanted):
        title = "Reef's default model" if name == _MODEL else name
        own = {**said, **sizes, "REEF_MODEL_ID": name, "REEF_MODEL_TITLE": title}
        listed[name] = template.in_data(form, own)
    return {"REEF_CONTEXT": context, "REEF_MODELS": list(listed.values()), "REEF_MODEL_MAP": listed}


def _is_left_out(path: str, adapter: Adapter, mode: Mode) -> bool:
    from daemon.core import harness

    entry = harness.entry(path)
    if entry is None or (entry.kind == "extension" and entry.adapter != adapter.name):
        return False
    return entry.kind in ("skill", "prompt", "extension") and _place(entry, adapter, mode) is None


def _parts(told: Delivery, adapter: Adapter, mode: Mode) -> dict[str, str]:
    from daemon.core import harness

    files = {}
    for path, text in told.files.items():
        entry = harness.entry(path)
        if entry is None:
            raise Untrusted(f"release {told.release_id} is refused: {path!r} is not a path for a harness")
        if mode.prompts is None and entry.kind == "prompt" and f"skills/{entry.name}{_SKILL}" in told.files:
            entry = entry._replace(name=f"{entry.name}-prompt")
        place = _place(entry, adapter, mode)
        if place is not None:
            files[place] = _as_skill(entry.name, text) if place.endswith(_SKILL) and entry.kind == "prompt" else text
    return files


def _check_size(told: Delivery, rules: str, adapter: Adapter, mode: Mode) -> None:
    """Raises Untrusted, as `_check_places` does."""
    by_word = "REEF_RULES" in template.places([mode.environment, mode.arguments], adapter.folder)
    if by_word and _size(rules) > _LONGEST_RULES:
        raise Untrusted(
            f"release {told.release_id} is refused: its rules and facts have {_size(rules) >> 10} KB, and"
            f" {adapter.title} can be told {_LONGEST_RULES >> 10} KB here",
            hint="reef harness edit shortens them, reef releases rollback leaves them",
        )


def _size(text: str) -> int:
    """Bytes, as TOML writes it."""
    return len(template.toml(text).encode())


def _check_places(told: Delivery, files: Mapping[str, str]) -> None:
    """Raises Untrusted, so that the run takes the release before, where nothing could be laid out."""
    for path in files:
        parts = path.split("/")
        if parts[0] in OURS or any("/".join(parts[:count]) in files for count in range(1, len(parts))):
            raise Untrusted(
                f"release {told.release_id} is refused: {path!r} lies where there is something else",
                hint="reef releases rollback, or propose it under another name",
            )


def _place(entry: "Entry", adapter: Adapter, mode: Mode) -> str | None:
    skills = f"{mode.skills}/{entry.name}" if mode.skills is not None else None
    if entry.kind == "skill":
        return f"{skills}/{entry.file}" if skills else None
    if entry.kind == "prompt":
        if mode.prompts is not None:
            return f"{mode.prompts}/{entry.name}.md"
        return f"{skills}{_SKILL}" if skills else None
    if entry.kind == "extension" and entry.adapter == adapter.name and mode.extensions is not None:
        return f"{mode.extensions}/{entry.file}" if mode.extensions else entry.file
    return None


def _as_skill(name: str, text: str) -> str:
    """A prompt's words under a name and a description, which a skill must have."""
    head, body = "", text
    if text.startswith("---\n"):
        head, _, body = text[4:].partition("\n---\n")
    lines = [line for line in head.splitlines() if not line.startswith("name:")]
    if not any(line.startswith("description:") for line in lines):
        lines.append(f"description: {json.dumps(name)}")
    return "\n".join(["---", f"name: {name}", *lines, "---", body])


def _server(server: "Server", adapter: Adapter) -> Any:
    said = {
        "REEF_MCP_NAME": server.name,
        "REEF_MCP_COMMAND": server.command,
        "REEF_MCP_ARGS": list(server.args),
        "REEF_MCP_WORDS": [server.command, *server.args],
        "REEF_MCP_ENV": dict(server.env) or None,
        "REEF_MCP_URL": server.url,
        "REEF_MCP_HEADERS": dict(server.headers) or None,
    }
    return template.in_data(adapter.mcp["local" if server.url is None else "remote"], said)


def _read(told: Delivery, path: str, read: Callable[[str], _T], otherwise: _T) -> _T:
    if path not in told.files:
        return otherwise
    try:
        return read(told.files[path])
    except ValueError as error:
        raise Untrusted(f"release {told.release_id} is refused: {path}: {error}") from None
