"""Typer, for what the hot path leaves: help, mistakes, completion, and every command that may take a moment to start.

Commands are made from the table when they are asked for, so that `reef traces list` imports nothing of `reef demo`.
"""

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from daemon.core.errors import ExitCode, UsageError
from reef_cli.commands import COMMANDS, Command, Group
from reef_cli.main import load
from reef_cli.parameters import Help, option_flags


class _Root(TyperGroup):
    """Reads the table instead of holding commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else _made(cmd_name, entry)


def run(words: list[str]) -> int:
    """Parse and run; the exit code. Raises UsageError for words that no command takes."""
    app = _typer(cls=_Root, add_completion=True)
    app.callback()(_root)
    try:
        code = get_command(app).main(args=words, prog_name="reef", standalone_mode=False)
    except typer.TyperException as error:
        raise UsageError(error.format_message().replace("Value error, ", ""), hint=_hint(error)) from error
    except typer.Abort:
        return ExitCode.INTERRUPTED
    return code if isinstance(code, int) else ExitCode.OK


def _hint(error: typer.TyperException) -> str:
    """The command to call next; a lone word where an agent is named by an option may be that agent."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "reef"
    lone = re.search(r"extra argument\S* \(([a-z-]+)\)", error.format_message())
    if lone and context is not None and any(one.name == "adapter" for one in context.command.params):
        return f"{path} --adapter {lone[1]}"
    return f"{path} --help"


def _root() -> None:
    """Records what your coding agents do, takes your feedback, and makes them better."""


def _typer(**options: Any) -> typer.Typer:
    # Plain help: what is printed does not depend on Rich, which costs another 60 ms.
    return typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **options,
    )


def _made(name: str, entry: Command | Group) -> Any:
    app = _typer(add_completion=False)
    if isinstance(entry, Group):
        app.callback(help=entry.summary)(_root)
        for verb, command in entry.verbs.items():
            _add(app, verb, command)
    else:
        _add(app, name, entry)
    made = get_command(app)
    made.name = name
    return made


def _add(app: typer.Typer, name: str, command: Command) -> None:
    function = load(command)
    details = inspect.getdoc(function) or ""
    examples = "\n".join(f"  {example}" for example in command.examples)
    text = f"{command.summary}\n\n{details}\n\n\b\nExamples:\n{examples}"
    app.command(name, help=text, short_help=command.summary)(_annotated(function))


def _annotated(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with its `Help` annotations said in Typer's words."""
    kinds = get_type_hints(function, include_extras=True)
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        annotation = kinds[parameter.name]
        note: Help = annotation.__metadata__[0]
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            said = typer.Option(*option_flags(parameter.name, note), help=note.text)
        else:
            said = typer.Argument(help=note.text)
        parameters.append(parameter.replace(annotation=Annotated[annotation.__origin__, said]))

    def call(**values: Any) -> Any:
        return function(**values)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
