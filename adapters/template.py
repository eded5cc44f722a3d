"""Templates of an adapter: texts with ``$REEF_…`` places, as they become files, words of a command and variables.

A source is a text, ``{"file": NAME}`` beside the adapter, or ``{"json": …}`` or ``{"toml": …}`` written out here. In
JSON and TOML a text that is nothing but a place becomes the value itself, of any type, and a field whose value is None
goes; elsewhere the place is replaced inside the text. Values are never read as templates again.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

#: Where a value goes.
PLACE: Final = re.compile(r"\$(REEF_[A-Z_]+)")

#: ``str | {"file": str} | {"json": Any} | {"toml": Any}``; the last two with ``{"before": str}`` as words.
Source = str | Mapping[str, Any]


def filled(source: Source, values: Mapping[str, Any], folder: Path) -> str:
    """The text of one file. Raises KeyError for a place without a value."""
    if isinstance(source, str):
        return in_text(source, values)
    if "json" in source:
        return json.dumps(in_data(source["json"], values), indent=2) + "\n"
    if "toml" in source:
        made = in_data(source["toml"], values)
        return "".join(f"{_key(name)} = {toml(value)}\n" for name, value in made.items())
    text = (folder / source["file"]).read_text("utf-8")
    if source["file"].endswith(".json"):
        return json.dumps(in_data(json.loads(text), values), indent=2) + "\n"
    return in_text(text, values)


def word(source: Source, values: Mapping[str, Any]) -> str:
    """A word of a command or a variable's value, on one line where it is data."""
    if isinstance(source, str):
        return in_text(source, values)
    before = in_text(source.get("before", ""), values)
    if "json" in source:
        return before + json.dumps(in_data(source["json"], values))
    return before + toml(in_data(source["toml"], values))


def places(sources: Any, folder: Path) -> set[str]:
    """Names of all places in these templates and in the files that they name."""
    text = json.dumps(sources)
    files = [(folder / name).read_text("utf-8") for name in re.findall(r'{"file": "([^"]+)"}', text)]
    return {name for one in (text, *files) for name in PLACE.findall(one)}


def in_text(text: str, values: Mapping[str, Any]) -> str:
    """A truth inside a text is 1 or 0, as an address's query has it."""
    return PLACE.sub(lambda place: _said(values[place[1]]), text)


def _said(value: Any) -> str:
    return str(int(value) if isinstance(value, bool) else value)


def in_data(value: Any, values: Mapping[str, Any]) -> Any:
    """JSON data with its places filled."""
    if isinstance(value, dict):
        made = {in_text(key, values): in_data(inner, values) for key, inner in value.items()}
        return {key: inner for key, inner in made.items() if inner is not None}
    if isinstance(value, list):
        return [in_data(inner, values) for inner in value]
    if isinstance(value, str):
        whole = PLACE.fullmatch(value)
        return values[whole[1]] if whole else in_text(value, values)
    return value


def toml(value: Any) -> str:
    """A TOML value on one line (toml.io, v1.0.0: basic strings, arrays, inline tables)."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)} = {toml(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    # JSON's strings, numbers and booleans are TOML's, but that DEL must be escaped there.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)
