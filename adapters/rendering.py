"""A release's harness as one agent reads it: (tree, adapter, mode) → {path: text}. Pure.

The tree's parts go to the places that the mode names. A part without a place is left out, but that a prompt becomes a
skill: the same words, found by the agent instead of called by the person.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapters import delivery, template
from adapters.agent import Adapter, Mode
from adapters.delivery import Delivery
from daemon.core.errors import Untrusted

_THINKING: Final = ("off", "low", "medium", "high")


def values(told: Delivery, adapter: Adapter) -> dict[str, Any]:
    """What the templates say of a release. ``told`` is `delivery.checked` already. Raises Untrusted for a tree that is
    none."""
    config = _json(told, "config.json")
    return {
        "REEF_RULES": _rules(told),
        "REEF_RELEASE": told.release_id,
        "REEF_MODEL": _said(told, config, "model"),
        "REEF_THINKING": adapter.thinking.get(_said(told, config, "thinking") or ""),
        "REEF_MCP": _servers(told, adapter),
    }


def rendered(told: Delivery, adapter: Adapter, mode: Mode) -> dict[str, str]:
    """Path → text of the read-only part of a session's configuration."""
    files = {}
    for path, text in told.files.items():
        place = _place(path, adapter, mode)
        if place is None:
            continue
        if not delivery.plain(path):
            raise Untrusted(f"release {told.release_id} is refused: {path!r} is not a path for a harness")
        files[place] = _as_skill(path, text) if _becomes_skill(path, mode) else text
    said = values(told, adapter)
    files |= {name: template.filled(source, said, adapter.folder) for name, source in mode.release.items()}
    return {path: text for path, text in files.items() if text.strip()}


def models(adapter: Adapter, names: Sequence[str], context: int) -> list[Any]:
    """The daemon's models as this agent's configuration lists them; ``context`` in tokens."""
    return [
        template.in_data(
            adapter.model,
            {
                "REEF_MODEL_ID": name,
                "REEF_MODEL_TITLE": "Reef's default model" if name == "default" else name,
                "REEF_MODEL_CONTEXT": context,
                "REEF_MODEL_OUTPUT": context // 4,
            },
        )
        for name in names
    ]


def _place(path: str, adapter: Adapter, mode: Mode) -> str | None:
    folder, _, rest = path.partition("/")
    if not rest:
        return None
    if folder == "skills" and mode.skills is not None:
        return f"{mode.skills}/{rest}"
    if folder == "prompts":
        if mode.prompts is not None:
            return f"{mode.prompts}/{rest}"
        return f"{mode.skills}/{rest.removesuffix('.md')}/SKILL.md" if mode.skills is not None else None
    if folder == "extensions" and mode.extensions is not None and rest.startswith(f"{adapter.name}/"):
        inner = rest.removeprefix(f"{adapter.name}/")
        return f"{mode.extensions}/{inner}" if mode.extensions else inner
    return None


def _becomes_skill(path: str, mode: Mode) -> bool:
    return path.startswith("prompts/") and mode.prompts is None


def _as_skill(path: str, text: str) -> str:
    """The same words under a name and a description, which a skill must have."""
    name = path.removeprefix("prompts/").removesuffix(".md")
    head, body = "", text
    if text.startswith("---\n"):
        head, _, body = text[4:].partition("\n---\n")
    lines = [line for line in head.splitlines() if not line.startswith("name:")]
    if not any(line.startswith("description:") for line in lines):
        lines.append(f"description: {json.dumps(name)}")
    return "\n".join(["---", f"name: {name}", *lines, "---", body])


def _rules(told: Delivery) -> str:
    """Rules, facts and the playbook's rules, as an agent is told them."""
    facts = [text for path, text in sorted(told.files.items()) if path.startswith("memory/")]
    parts = (told.files.get("rules.md", ""), *facts, _counted(told) if told.files else "")
    return "\n\n".join(text.strip() for text in parts if text.strip())


def _counted(told: Delivery) -> str:
    from daemon.core import playbook  # not at import: a release without rules needs none of it

    try:
        return playbook.told(playbook.parse(told.files.get(playbook.PATH, "")))
    except ValueError as error:
        raise Untrusted(f"release {told.release_id} is refused: {playbook.PATH}: {error}") from None


def _servers(told: Delivery, adapter: Adapter) -> dict[str, Any] | None:
    """MCP servers in the agent's words; None without any."""
    servers = _json(told, "mcp.json").get("mcpServers", {})
    if not isinstance(servers, dict) or not all(isinstance(one, dict) for one in servers.values()):
        raise Untrusted(f"release {told.release_id} is refused: mcp.json: mcpServers is no table of servers")
    if not servers or not adapter.mcp:
        return None
    made = {}
    for name, said in servers.items():
        words = [said.get("command"), *said.get("args", [])]
        given = {
            "REEF_MCP_COMMAND": said.get("command"),
            "REEF_MCP_ARGS": said.get("args", []),
            "REEF_MCP_WORDS": words,
            "REEF_MCP_ENV": said.get("env") or None,
            "REEF_MCP_URL": said.get("url"),
            "REEF_MCP_HEADERS": said.get("headers") or None,
        }
        made[name] = template.in_data(adapter.mcp["remote" if "url" in said else "local"], given)
    return made


def _json(told: Delivery, path: str) -> Mapping[str, Any]:
    try:
        said = json.loads(told.files.get(path, "{}"))
    except ValueError as error:
        raise Untrusted(f"release {told.release_id} is refused: {path}: {error}") from None
    if not isinstance(said, dict):
        raise Untrusted(f"release {told.release_id} is refused: {path} is no JSON object")
    return said


def _said(told: Delivery, config: Mapping[str, Any], field: str) -> str | None:
    value = config.get(field)
    if value is None or (isinstance(value, str) and (field != "thinking" or value in _THINKING)):
        return value
    raise Untrusted(f"release {told.release_id} is refused: config.json says {field} {str(value)[:80]!r}")
