"""What the command palette offers: every key's action where the person is, themes, every command of `reef`. Pure."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from reef_cli.commands import COMMANDS, Command, Group
from reef_cli.tui.keys import Key, Place, at
from reef_cli.tui.text import inert
from reef_cli.tui.themes import THEMES, Theme

_LOOKS: Final[dict[Theme, str]] = {
    "dark": "light on dark",
    "light": "dark on light",
    "ansi": "the terminal's own colours",
    "safe": "for any colour vision: blue and orange",
}
#: It is what one is in.
_NOT_HERE: Final = {"tui"}


@dataclass(frozen=True, slots=True)
class Choice:
    """``value`` is a key's id, a theme's name or a command's words; ``why`` it cannot act now."""

    kind: Literal["key", "theme", "command"]
    value: str
    shown: str
    text: str
    twin: str
    why: str | None = None


def choices(place: Place, table: Sequence[Key], blocked: Callable[[str], str | None]) -> list[Choice]:
    """All there is: keys first, and of them those that do more than move about."""
    keys = sorted((key for key in at(place, table) if key.id != "palette"), key=lambda key: not key.twin)
    found = [Choice("key", key.id, key.shown, key.text, key.twin, blocked(key.id)) for key in keys]
    found += [Choice("theme", name, "", f"theme {name}: {_LOOKS[name]}", f"reef tui --theme {name}") for name in THEMES]
    for words, command in _commands():
        found.append(Choice("command", words, "", command.summary, f"reef {words}"))
    return found


def matching(offered: Sequence[Choice], typed: str) -> list[Choice]:
    """Those that have every word typed. A command that is typed out, with what follows it, is the first of the
    commands; of all where ``reef`` stands before it: ``good`` alone is the key's, which rates what is selected."""
    found = [choice for choice in offered if all(word in _searched(choice) for word in typed.lower().split())]
    spelled = _spelled(typed)
    if spelled is None:
        return found
    found = [choice for choice in found if (choice.kind, choice.value) != (spelled.kind, spelled.value)]
    place = next((n for n, choice in enumerate(found) if choice.kind == "command"), len(found))
    found.insert(0 if typed.split()[0] == "reef" else place, spelled)
    return found


def _searched(choice: Choice) -> str:
    return f"{choice.shown} {choice.text} {choice.twin} {choice.value}".lower()


def _spelled(typed: str) -> Choice | None:
    """``doctor``, ``reef traces show ses_1``: a command of reef and its words."""
    try:
        words = shlex.split(typed)
    except ValueError:  # a quote that is still open
        return None
    words = words[1:] if words[:1] == ["reef"] else words
    known = {tuple(name.split()): command for name, command in _commands()}
    command = known.get(tuple(words[:1])) or known.get(tuple(words[:2]))
    if command is None:
        return None
    return Choice("command", shlex.join(words), "", command.summary, inert(f"reef {shlex.join(words)}"))


def _commands() -> list[tuple[str, Command]]:
    found: list[tuple[str, Command]] = []
    for name, entry in COMMANDS.items():
        if isinstance(entry, Group):
            found += [(f"{name} {verb}", command) for verb, command in entry.verbs.items()]
        elif name not in _NOT_HERE:
            found.append((name, entry))
    return found
