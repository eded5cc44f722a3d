"""Templates of ``harness_templates/<adapter>/``: files with ``$REEF_…`` places, and a manifest of what each is for.

In JSON files a text that is nothing but a place becomes the value itself, of any type, and a field whose value is None
goes; elsewhere the place is replaced inside the text. Values are never read as templates again.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

_ROOT: Final = Path(__file__).parents[1] / "harness_templates"
_PLACE: Final = re.compile(r"\$(REEF_[A-Z_]+)")


class Template(NamedTuple):
    """One adapter's. ``release`` files are rendered once a release and read-only, ``session`` files for each session.

    ``shared`` names belong to the person and outlive sessions and upgrades (``/`` at the end: a folder); ``seeds`` of
    them start from a template. ``environment``: None takes a variable away.
    ``skills`` and ``prompts`` are the folders where this agent looks for what a release brings.
    """

    folder: Path
    release: tuple[str, ...]
    session: tuple[str, ...]
    shared: tuple[str, ...]
    seeds: tuple[str, ...]
    skills: str
    prompts: str
    environment: Mapping[str, str | None]

    def filled(self, name: str, values: Mapping[str, Any]) -> str:
        """The text of one file. Raises KeyError for a place without a value."""
        text = (self.folder / name).read_text("utf-8")
        if not name.endswith(".json"):
            return in_text(text, values)
        return json.dumps(_in_json(json.loads(text), values), indent=2) + "\n"


def load(adapter: str) -> Template:
    folder = _ROOT / adapter
    said = json.loads((folder / "manifest.json").read_text("utf-8"))
    lists = {name: tuple(said[name]) for name in ("release", "session", "shared", "seeds")}
    return Template(
        folder=folder, **lists, skills=said["skills"], prompts=said["prompts"], environment=said["environment"]
    )


def in_text(text: str, values: Mapping[str, Any]) -> str:
    return _PLACE.sub(lambda place: str(values[place[1]]), text)


def _in_json(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        made = {key: _in_json(inner, values) for key, inner in value.items()}
        return {key: inner for key, inner in made.items() if inner is not None}
    if isinstance(value, list):
        return [_in_json(inner, values) for inner in value]
    if isinstance(value, str):
        whole = _PLACE.fullmatch(value)
        return values[whole[1]] if whole else in_text(value, values)
    return value
