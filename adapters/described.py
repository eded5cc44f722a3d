"""Whether a description of an agent is one, field by field, before anything is done by it.

A person writes it, or takes it from somebody: a slip must not write outside the folders that are meant, put another
program in the agent's place, or come to light in the middle of an install. Whatever passes here can be carried out.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from adapters.template import PLACE

MODES: Final = ("isolated", "overlay")
#: What `adapters.session` and `adapters.shelf` keep beside the files of a mode.
OURS: Final = ("lock", "release", ".made.json", ".release.json")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: They put another program in the place of whatever the agent starts.
_LOADERS: Final = re.compile(r"LD_\w+|DYLD_\w+|PATH|BASH_ENV|ENV|IFS")
_SHAPES: Final = {
    "command": re.compile(r"reef-[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?"),
    "program": re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}"),
    "version": re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}"),
    "on": re.compile(r"[a-z0-9]+-[a-z0-9_]+"),
    "node": re.compile(r"\d{1,4}(?:\.\d{1,4}){0,2}"),
    "python": re.compile(r"\d{1,4}\.\d{1,4}"),
    "npm": re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*(?<!\.)"),
    "pip": re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"),
    "integrity": re.compile(r"sha512-[A-Za-z0-9+/]+=*|sha256:[0-9a-f]{64}"),
}


def _places(words: str) -> frozenset[str]:
    return frozenset(f"REEF_{word}" for word in words.split())


#: What a template may name, by where it stands: that is filled in there, and nothing else is.
OF_RELEASE: Final = _places("ALONE MCP MCP_LIST MODEL MODEL_NAME RELEASE RULES THINKING THINKS")
OF_RUN: Final = OF_RELEASE | _places(
    "ACTIVATED ADAPTER BYTECODE CACHE_HOME CONFIG_HOME CONTEXT FOLDER HEADERS MODELS MODEL_MAP NEWER NOTICE "
    "POLL_SECONDS QUOTED_TOKEN_FILE RELEASE_FACTS RUN SCENARIO SESSION_DIRECTORY THEIRS TOKEN TOKEN_FILE TOLD_URL "
    "UNSET URL USER_DIRECTORY"
)
OF_EACH: Final = OF_RUN | _places("EACH")
OF_MODEL: Final = OF_RELEASE | _places("MODEL_CONTEXT MODEL_ID MODEL_OUTPUT MODEL_TITLE")
OF_SERVER: Final = _places("MCP_ARGS MCP_COMMAND MCP_ENV MCP_HEADERS MCP_NAME MCP_URL MCP_WORDS")
OF_INSTALL: Final = _places("NODE ROOT")
OF_QUIET: Final = _places("PRIVATE")
OF_SCRATCH: Final = _places("TOKEN USER_DIRECTORY")
_NOWHERE: Final = _places("")
_DEEPEST: Final = 20
_SHOWN: Final = 60
Check = Callable[[str, Any], None]


def check(said: Any) -> None:
    """Return where the parsed file can be carried out. Raises ValueError that names the field and its value."""
    _fields(_FIELDS, ("title", "command", "summary", "program", "check", "modes"))("", said)
    for name, mode in said["modes"].items():
        if "model" in mode and not isinstance(said.get("model"), dict):
            raise ValueError(f"modes.{name}.model: the fields of model that are others here, and model has none")


def _wrong(field: str, value: Any, what: str) -> ValueError:
    return ValueError(f"{field}: {ascii(value)[:_SHOWN]} {what}" if field else f"it is {what}")


def _fields(known: Mapping[str, Check], needed: tuple[str, ...] = ()) -> Check:
    def check(field: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise _wrong(field, value, "is no object" if field else "no object")
        for name in value.keys() - known.keys():
            raise ValueError(f"{_at(field, name)} is no field there is; there are {', '.join(known)}")
        for name in needed:
            if name not in value:
                raise ValueError(f"{_at(field, name)} is missing")
        for name, inner in value.items():
            known[name](_at(field, name), inner)

    return check


def _at(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _each(check: Check, least: int = 0) -> Check:
    def check_all(field: str, value: Any) -> None:
        if not isinstance(value, list) or len(value) < least:
            raise _wrong(field, value, f"is no list{' of one or more' if least else ''}")
        for n, inner in enumerate(value):
            check(f"{field}[{n}]", inner)

    return check_all


def _map(key: Check, check: Check) -> Check:
    def check_all(field: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise _wrong(field, value, "is no object")
        for name, inner in value.items():
            key(field, name)
            check(_at(field, name), inner)

    return check_all


def _line(field: str, value: Any) -> None:
    if not (isinstance(value, str) and value.strip() and value.isprintable()):
        raise _wrong(field, value, "is no line of text")


def _word(places: frozenset[str] = _NOWHERE) -> Check:
    def check(field: str, value: Any) -> None:
        if not isinstance(value, str):
            raise _wrong(field, value, "is no text")
        if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise _wrong(field, value, "has a character that no file or command takes")
        for place in PLACE.findall(value):
            if place not in places:
                raise _wrong(field, f"${place}", "stands for nothing here")

    return check


def _shape(name: str) -> Check:
    def check(field: str, value: Any) -> None:
        if not (isinstance(value, str) and _SHAPES[name].fullmatch(value)):
            raise _wrong(field, value, f"is no {'machine' if name == 'on' else name}: {_SHAPES[name].pattern}")

    return check


def _path(field: str, value: Any) -> None:
    """Of a file or a folder (``/`` at the end) inside one that is Reef's own."""
    if not isinstance(value, str) or not value.isprintable():
        raise _wrong(field, value, "is no path")
    parts = value.removesuffix("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise _wrong(field, value, "leads out of its folder")
    if parts[0] in OURS:
        raise _wrong(field, value, "is where Reef has a file of its own")


def _variable(field: str, name: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise _wrong(field, name, "is no variable's name")
    if _LOADERS.fullmatch(name):
        raise _wrong(field, name, "would put other programs in the place of those the agent starts")


def _data(places: frozenset[str]) -> Check:
    def check(field: str, value: Any, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise _wrong(field, value, "is nested too deep")
        if isinstance(value, str):
            _word(places)(field, value)
        for inner in value if isinstance(value, list) else [*value, *value.values()] if isinstance(value, dict) else ():
            check(field, inner, depth + 1)

    return check


def _source(places: frozenset[str]) -> Check:
    """A file's text, see `adapters.template.Source`."""

    def check(field: str, value: Any) -> None:
        if isinstance(value, str):
            _word(places)(field, value)
            return
        _fields({"file": _path, "json": _data(places), "toml": table})(field, value)
        if len(value) != 1:
            raise _wrong(field, value, 'is neither a text, {"file": …}, {"json": …} nor {"toml": …}')

    def table(field: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise _wrong(field, value, "is no table")
        _data(places)(field, value)

    return check


def _said(places: frozenset[str]) -> Check:
    """A word of a command, or a variable's value."""

    def check(field: str, value: Any) -> None:
        if isinstance(value, str):
            _word(places)(field, value)
            return
        _fields({"before": _word(places), "json": _data(places), "toml": _data(places)})(field, value)
        if ("json" in value) == ("toml" in value):
            raise _wrong(field, value, 'is neither a text, {"json": …} nor {"toml": …}')

    return check


def _unless_null(check: Check) -> Check:
    return lambda field, value: None if value is None else check(field, value)


def _folder(field: str, value: Any) -> None:
    if value:
        _path(field, value)
    elif value not in ("", None):
        raise _wrong(field, value, "is no path")


def _argument(field: str, value: Any) -> None:
    if isinstance(value, dict) and "words" in value:
        places = OF_EACH if "each" in value else OF_RUN
        _fields({"words": _each(_said(places)), "only": _only, "each": _path})(field, value)
    else:
        _said(OF_RUN)(field, value)


def _only(field: str, value: Any) -> None:
    if not (isinstance(value, str) and value in OF_RUN):
        _path(field, value)


def _truth(field: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise _wrong(field, value, "is neither true nor false")


def _number(field: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _wrong(field, value, "is no number of megabytes")


def _mode(field: str, value: Any) -> None:
    _fields(_MODE)(field, value)
    made = [*value.get("session", {}), *(name.removesuffix("/") for name in value.get("shared", ()))]
    for name in made:
        if made.count(name) > 1 or any(other.startswith(f"{name}/") for other in made):
            raise _wrong(field, name, "is there twice, or a file and a folder")


def _modes(field: str, value: Any) -> None:
    _fields(dict.fromkeys(MODES, _mode))(field, value)
    if not value:
        raise _wrong(field, value, f"has none of {', '.join(MODES)}")


def _package(field: str, value: Any) -> None:
    named = ("npm", "pip")
    _fields(
        {"npm": _shape("npm"), "pip": _shape("pip"), "version": _shape("version"), "mb": _number}
        | {"integrity": _shape("integrity")},
        ("version", "mb", "integrity"),
    )(field, value)
    if sum(name in value for name in named) != 1:
        raise _wrong(field, value, "names no package: npm or pip")


def _variables(places: frozenset[str]) -> Check:
    return _map(_variable, _unless_null(_said(places)))


_MODE: Final[Mapping[str, Check]] = {
    "release": _map(_path, _source(OF_RELEASE)),
    **dict.fromkeys(("session", "seeds"), _map(_path, _source(OF_RUN))),
    "shared": _each(_path),
    **dict.fromkeys(("skills", "prompts", "extensions"), _folder),
    "open": _each(_path),
    "environment": _variables(OF_RUN),
    "scratch": _variables(OF_SCRATCH),
    "own": _each(_word()),
    "model": _map(_word(OF_MODEL), _data(OF_MODEL)),
    "arguments": _each(_argument),
}
_INSTALL: Final[Mapping[str, Check]] = {
    "version": _shape("version"),
    "packages": _each(_package, 1),
    "run": _each(_word(OF_INSTALL), 1),
    "on": _shape("on"),
    "asks": _each(_word(OF_INSTALL), 1),
    "node": _shape("node"),
    "python": _shape("python"),
}
_FIELDS: Final[Mapping[str, Check]] = {
    **dict.fromkeys(("title", "summary", "says_version"), _line),
    "command": _shape("command"),
    "program": _shape("program"),
    **dict.fromkeys(("check", "asks_version", "plain"), _each(_word())),
    "modes": _modes,
    "installs": _each(_fields(_INSTALL, ("version", "packages", "run"))),
    "quiet": _map(_variable, _said(OF_QUIET)),
    "model": _data(OF_MODEL),
    "mcp": _fields(dict.fromkeys(("local", "remote"), _data(OF_SERVER)), ("local", "remote")),
    "thinking": _map(_line, _word()),
    "since": _fields(dict.fromkeys(("mcp", "thinking"), _shape("version"))),
    "silent": _truth,
}
