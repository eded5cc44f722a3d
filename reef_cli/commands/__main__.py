"""``python -m reef_cli.commands README.md``: write the table of commands between the file's two markers."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from reef_cli.commands import COMMANDS, Command, Group
from reef_cli.main import load

START, END = "<!-- commands -->", "<!-- /commands -->"


def table() -> str:
    """The table of commands in Markdown, from the same table and signatures that run them."""
    rows = [f"| `{_usage(words, command)}` | {command.summary} |" for words, command in _all()]
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def updated(text: str) -> str:
    """``text`` with the table between its markers replaced. Raises ValueError without markers."""
    before, found, rest = text.partition(START)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise ValueError(f"no {START} … {END} in the text")
    return f"{before}{START}\n{table()}\n{END}{after}"


def _all() -> Iterator[tuple[str, Command]]:
    for name, entry in COMMANDS.items():
        if isinstance(entry, Group):
            yield from ((f"{name} {verb}", command) for verb, command in entry.verbs.items())
        else:
            yield name, entry


def _usage(words: str, command: Command) -> str:
    parts = [f"reef {words}"]
    for parameter in inspect.signature(load(command)).parameters.values():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            name = parameter.name.upper()
            parts.append(name if parameter.default is inspect.Parameter.empty else f"[{name}]")
    return " ".join(parts)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
