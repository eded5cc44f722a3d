"""``python -m reef_cli.commands README.md``: write the tables of agents, commands, fields, keys."""

import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from adapters import agent
from adapters.pointing import AGENTS
from daemon.core import fields
from daemon.core.paths import Home
from reef_cli.commands import COMMANDS, Command, Group
from reef_cli.main import load
from reef_cli.tui import keys


def table() -> str:
    """The table of commands in Markdown, from the same table and signatures that run them."""
    rows = [f"| `{_usage(words, command)}` | {command.summary} |" for words, command in _all()]
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def agents() -> str:
    """The table of agents and their files, from what their tests run on."""
    rows = []
    for name, told in AGENTS.items():
        variables = (*told.variables, *(f"{key}={value}" for key, value in told.fixed.items()))
        file = f"`~/{told.file}`" if told.file else ""
        rows.append(f"| {told.title} | `reef env {name}` | {_code(variables)} | {file} | `{told.command}` |")
    head = ["| agent | what it needs | variables | file | run it |", "|---|---|---|---|---|"]
    files = [f"`~/{told.file}`:\n\n```\n{told.text}```\n" for told in AGENTS.values() if told.file]
    return "\n".join([*head, *rows, "", "<details><summary>The files</summary>", "", *files, "</details>"])


def wrapped() -> str:
    """The table of agents that Reef wraps, from their descriptions."""
    nobody = Home(Path("/nonexistent"))
    rows = [
        f"| {told.title} | `{name}` | {' '.join(dict.fromkeys(one.version for one in told.installs))} "
        f"| {', '.join(told.modes)} | `{told.command}` |"
        for name in agent.names(nobody)
        for told in (agent.load(nobody, name),)
    ]
    return "\n".join(["| agent | `--adapter` | version | modes | run it |", "|---|---|---|---|---|", *rows])


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def updated(text: str) -> str:
    """``text`` with the tables between its markers replaced. Raises ValueError without markers."""
    tables = {
        "agents": agents(),
        "wrapped": wrapped(),
        "commands": table(),
        "fields": fields.markdown(),
        "keys": keys.markdown(),
    }
    for name, content in tables.items():
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, found, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"no {start} … {end} in the text")
        text = f"{before}{start}\n{content}\n{end}{after}"
    return text


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
