"""How a command declares what it takes: an ordinary signature whose annotations carry a `Help`.

Positional parameters are arguments, keyword-only ones are options. The same signature feeds three readers: `bind` below
(the hot commands, before Typer is imported), `reef_cli.app` (Typer) and the README's table. Nothing here may import
Typer, ``inspect`` or ``argparse``: this module is on the path of every command's first 60 ms.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any


class Help:
    """One parameter's line in ``--help``; ``flags`` replace the ``--name`` made from an option's name."""

    __slots__ = ("flags", "text")

    def __init__(self, text: str, *flags: str) -> None:
        self.text = text
        self.flags = flags


#: Every command has it.
AsJson = Annotated[bool, Help("Answer in JSON.", "--json")]
Record = Annotated[str | None, Help("A receipt (rec_…); by default the last session's last answer.")]


def option_flags(name: str, note: Help) -> tuple[str, ...]:
    return note.flags or (f"--{name.replace('_', '-')}",)


def bind(function: Callable[..., Any], words: Sequence[str]) -> dict[str, Any] | None:
    """The keyword arguments that ``words`` spell for ``function``; None leaves the words to Typer.

    Takes only the plain form (arguments, ``--flag``, ``--option value``). Whatever else there is, ``--help``, mistakes
    and abbreviations included, is Typer's to answer.
    """
    code = function.__code__
    arguments = code.co_varnames[: code.co_argcount]
    options = _options(function)
    values: dict[str, Any] = {}
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            found.append(word)
            continue
        if word not in options:
            return None
        name, switch = options[word]
        value = None if switch else next(rest, None)
        if not switch and (value is None or not _allowed(function, name, value)):
            return None
        values[name] = True if switch else value
    required = len(arguments) - len(function.__defaults__ or ())
    if not required <= len(found) <= len(arguments):
        return None
    return values | dict(zip(arguments, found, strict=False))


def _options(function: Callable[..., Any]) -> dict[str, tuple[str, bool]]:
    """Flag → (parameter, whether it is a switch rather than one that takes a value)."""
    table: dict[str, tuple[str, bool]] = {}
    for name, default in (function.__kwdefaults__ or {}).items():
        note = function.__annotations__[name].__metadata__[0]
        for flag in option_flags(name, note):
            table[flag] = (name, isinstance(default, bool))
    return table


def _allowed(function: Callable[..., Any], name: str, value: str) -> bool:
    """Whether a closed vocabulary (``Literal``) holds the value; open ones hold everything but a further flag."""
    kind = function.__annotations__[name].__origin__
    choices = getattr(kind, "__args__", ())
    words = [choice for choice in choices if isinstance(choice, str)]
    return value in words if words else not value.startswith("-")
