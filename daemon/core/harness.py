"""The harness of a release as a typed tree: what each path below ``harness/`` is, and how its JSON files are read;
and ``routing.json`` beside it.

Everything that writes, checks, renders or shows a harness asks here, so that a path means the same everywhere. A path
that is not of a known kind is no part of a harness. Loosening `executable` lets a recipe's words run on a person's
machine: what an agent starts by itself is executable, whoever wrote it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, Final, NamedTuple

from daemon.core import plaintext, playbook

#: Where the harness lies in a release.
BELOW: Final = "harness/"
RULES: Final = "rules.md"
CONFIG: Final = "config.json"
MCP: Final = "mcp.json"
#: Beside ``harness/`` in a release: which model answers when an agent asks for another.
ROUTING: Final = "routing.json"
_MARK: Final = re.compile(rb"\[reef release (r[0-9]{1,9}-[0-9a-f]{8})\]")


def mark(release_id: str) -> str:
    """The line below a release's rules by which a request says whose rules it carries."""
    return f"[reef release {release_id}]"


def marked(text: bytes) -> str | None:
    """The release of the last `mark` in a request's bytes."""
    found = _MARK.findall(text)
    return found[-1].decode() if found else None


class Kind(StrEnum):
    """What a file is for. Agents without a place of their own for a kind get it another way, or not at all."""

    RULES = "rules"
    PLAYBOOK = "playbook"  # counted rules
    MEMORY = "memory"  # facts, told after the rules
    SKILL = "skill"
    PROMPT = "prompt"  # a slash command
    CONFIG = "config"
    MCP = "mcp"
    EXTENSION = "extension"  # one agent's native file

    @property
    def is_text(self) -> bool:
        """Read by the agent and no more: what a recipe may propose."""
        return self not in (Kind.CONFIG, Kind.MCP, Kind.EXTENSION)

    @property
    def executable(self) -> bool:
        """Can act by itself: it always waits for a person's yes."""
        return self in (Kind.MCP, Kind.EXTENSION)


class Entry(NamedTuple):  # not a dataclass: see daemon.core.paths.Home
    """One path, understood. ``name``: of the memory, skill or prompt. ``adapter``: the only one that gets it, or None.

    ``file``: what is left of the path, in the skill's folder or in the adapter's.
    """

    path: str
    kind: Kind
    name: str = ""
    adapter: str | None = None
    file: str = ""


class Config(NamedTuple):
    """``config.json``: the model an agent asks for, and how much it thinks; None: as the agent has it."""

    model: str | None = None
    thinking: str | None = None


class Server(NamedTuple):
    """One MCP server: a ``command`` to start, or a ``url`` to talk to; the other is None."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str | None = None
    headers: Mapping[str, str] = {}


THINKING: Final = ("off", "low", "medium", "high")
#: Names that Windows keeps for devices, and what it would take the end off: no clone there could have such a file.
_NO_NAME: Final = re.compile(r"(?:^|/)(?:con|prn|aux|nul|com\d|lpt\d)(?:[./]|$)|\.(?:/|$)", re.IGNORECASE)
_NAME: Final = r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?"
#: No ``.git…``: such a file would change how a clone of the releases is checked out.
_PART: Final = r"(?!\.+(?:/|$)|\.[gG][iI][tT])[A-Za-z0-9._@-]{1,64}"
_SHAPES: Final = (
    (Kind.RULES, re.compile(re.escape(RULES))),
    (Kind.PLAYBOOK, re.compile(re.escape(playbook.PATH))),
    (Kind.CONFIG, re.compile(re.escape(CONFIG))),
    (Kind.MCP, re.compile(re.escape(MCP))),
    (Kind.MEMORY, re.compile(rf"memory/(?P<name>{_NAME})\.md")),
    (Kind.PROMPT, re.compile(rf"prompts/(?P<name>{_NAME})\.md")),
    (Kind.SKILL, re.compile(rf"skills/(?P<name>{_NAME})/(?P<file>[A-Za-z0-9][A-Za-z0-9_-]{{0,63}}\.md)")),
    (Kind.EXTENSION, re.compile(rf"extensions/(?P<adapter>{_NAME})/(?P<file>{_PART}(?:/{_PART}){{0,4}})")),
)
_WEIGHTS: Final = re.compile(r"weights(?:/[a-z0-9][a-z0-9_.-]{0,63}){1,3}")
PLACES: Final = (
    "rules.md, playbook.md, memory/NAME.md, skills/NAME/SKILL.md (and skills/NAME/*.md), prompts/NAME.md, "
    "config.json, mcp.json and extensions/ADAPTER/PATH"
)
#: The first character keeps it from being read as an option where an agent gets it as an argument.
_MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+~-]{0,199}")
_SERVER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_DESCRIPTION: Final = re.compile(r"^description:(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
#: How YAML begins a text of several lines.
_BLOCK: Final = re.compile(r"[|>][+-]?[1-9]?[+-]? ")
_URL: Final = re.compile(r"https?://[^\s/?#]+[^\s]*")
_SHOWN: Final = 60


def entry(path: str) -> Entry | None:
    """What the file at a path below ``harness/`` is; None: it has no place in a harness."""
    if _NO_NAME.search(path):
        return None
    for kind, shape in _SHAPES:
        if found := shape.fullmatch(path):
            named = found.groupdict()
            return Entry(path, kind, named.get("name", ""), named.get("adapter"), named.get("file", ""))
    return None


def holds(path: str) -> bool:
    """Whether a release may have a file there: below ``harness/`` or ``weights/``, or ``routing.json``."""
    if path.startswith(BELOW):
        return entry(path.removeprefix(BELOW)) is not None
    return path == ROUTING or _WEIGHTS.fullmatch(path) is not None


def clash(paths: Iterable[str]) -> tuple[str, str] | None:
    """Two of the paths that a file system may take for one, or of which one would have to be the other's folder."""
    known: dict[str, tuple[str, bool]] = {}
    for path in sorted(paths):
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            here = ("/".join(parts[:count]), count == len(parts))
            other = known.setdefault(here[0].casefold(), here)
            if other != here:
                return other[0], path
    return None


def executable(path: str) -> bool:
    """Whether the file at a path below ``harness/`` can act by itself; one of no known kind counts as such."""
    found = entry(path)
    return found is None or found.kind.executable


def executable_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Paths below ``harness/`` of the executable files that are not the same, or not there, on both sides.

    Both map a snapshot's paths (`daemon.core.releases.Release.files`) to digests.
    """
    return tuple(
        path.removeprefix(BELOW)
        for path in sorted(before.keys() | after.keys())
        if path.startswith(BELOW) and before.get(path) != after.get(path) and executable(path.removeprefix(BELOW))
    )


def description(skill: str) -> str:
    """What a skill is for, on one line: what its head says in YAML, whose module takes longer than a start may. In a
    release it is as YAML has it (`daemon.store.releases.texts`)."""
    found = _DESCRIPTION.search(skill.partition("\n---\n")[0])
    words = _BLOCK.sub("", f"{' '.join(found[1].split())} ", count=1).strip() if found else ""
    if words.startswith('"'):
        with suppress(ValueError):
            return plaintext.marked(" ".join(str(json.loads(words)).split()))
    return words[1:-1].replace("''", "'") if words[:1] == words[-1:] == "'" else words


def config(text: str) -> Config:
    """``config.json``. Raises ValueError saying what is wrong with it."""
    said = _object(_json(text), "config.json", ("model", "thinking"))
    model, thinking = said.get("model"), said.get("thinking")
    if model is not None and not (isinstance(model, str) and _MODEL.fullmatch(model)):
        raise ValueError(f"model {_shown(model)} is no model's name")
    if thinking is not None and thinking not in THINKING:
        raise ValueError(f"thinking {_shown(thinking)} is none of {', '.join(THINKING)}")
    return Config(model, thinking)


def mcp(text: str) -> tuple[Server, ...]:
    """The servers of ``mcp.json``, by name. Raises ValueError saying what is wrong with it."""
    said = _object(_json(text), "mcp.json", ("mcpServers",))
    servers = said.get("mcpServers")
    if not isinstance(servers, dict):
        raise ValueError('mcp.json has no {"mcpServers": {NAME: …}}')
    return tuple(_server(name, servers[name]) for name in sorted(servers))


def routing(text: str) -> dict[str, str]:
    """``routing.json``: the model name that an agent asks for → a model, or provider/model. Raises ValueError saying
    what is wrong with it.
    """
    said = _object(_json(text), ROUTING, ("models",))
    models = said.get("models")
    if not isinstance(models, dict):
        raise ValueError(f'{ROUTING} has no {{"models": {{NAME: MODEL}}}}')
    for pair in models.items():
        for name in pair:
            if not (isinstance(name, str) and _MODEL.fullmatch(name)):
                raise ValueError(f"{_shown(name)} is no model's name")
    return models


def dump_routing(models: Mapping[str, str]) -> str:
    """The file's text; `routing` of it gives the same."""
    return json.dumps({"models": dict(models)}, indent=2, sort_keys=True) + "\n"


def _server(name: str, said: Any) -> Server:
    if not _SERVER.fullmatch(name):
        raise ValueError(f"{_shown(name)} is no name for a server: letters, digits, - and _")
    what = f"server {name}"
    if not isinstance(said, dict) or ("command" in said) == ("url" in said):
        raise ValueError(f'{what} has either a "command" to start or a "url"')
    if "url" in said:
        _object(said, what, ("url", "headers"))
        url = said["url"]
        if not (isinstance(url, str) and _URL.fullmatch(url)):
            raise ValueError(f"{what}: url {_shown(url)} is not http:// or https://")
        return Server(name, url=url, headers=_words(said, "headers", what))
    _object(said, what, ("command", "args", "env"))
    command, args = said["command"], said.get("args", [])
    if not (isinstance(command, str) and command.strip()):
        raise ValueError(f"{what}: command {_shown(command)} is no program's name")
    if not (isinstance(args, list) and all(isinstance(word, str) for word in args)):
        raise ValueError(f"{what}: args {_shown(args)} is not a list of texts")
    return Server(name, command, tuple(args), _words(said, "env", what))


def _words(said: Mapping[str, Any], key: str, what: str) -> dict[str, str]:
    given = said.get(key, {})
    if not (isinstance(given, dict) and all(isinstance(value, str) for value in given.values())):
        raise ValueError(f"{what}: {key} {_shown(given)} does not map names to texts")
    return given


def _object(said: Any, what: str, fields: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(said, dict):
        raise ValueError(f"{what} is not an object")
    for key in said.keys() - set(fields):
        raise ValueError(f"{what}: {_shown(key)} is not let in; it has {', '.join(fields)}")
    return said


def _json(text: str) -> Any:
    """Parsed, every text in it visible: what a person approves is what they see. A key given twice would show them
    another value than the agent takes."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{_shown(key)} is there twice")
        for text in (key, *(value if isinstance(value, list) else [value])):
            if isinstance(text, str) and (seen := plaintext.invisible(text)):
                raise ValueError(f"the text of {_shown(key)} hides {seen}")
        found[key] = value
    return found


def _shown(value: Any) -> str:
    return ascii(value)[:_SHOWN]
