"""`reef traces changes · raw · curl`: one exchange, close up."""

from typing import Annotated, Literal

from daemon.core.client import Client, segment
from daemon.core.paths import home
from reef_cli import changes as changed
from reef_cli import exchanges, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import resolved
from reef_cli.parameters import AsJson, Help

Receipt = Annotated[str | None, Help("A receipt, or the beginning of one; by default that of the last answer.")]


def changes(name: Receipt = None, *, as_json: AsJson = False) -> None:
    """Messages that were added, or where the beginning is another than before: that is what breaks a prompt cache."""
    client = ensure_daemon(home())
    told = client.get(f"/reef/records/{segment(_receipt(client, name))}/changes")
    if as_json:
        output.json(told)
        return
    for line in changed.lines(told):
        output.line(line)


def raw(
    name: Receipt = None,
    *,
    side: Annotated[Literal["request", "response"], Help("Which of the two.")] = "request",
    as_json: AsJson = False,
) -> None:
    """As it was recorded, without its secrets; control characters are written as JSON escapes, so that it is inert."""
    client = ensure_daemon(home())
    text = exchanges.text(client, _receipt(client, name), side)
    output.told({side: text}, text, as_json)


def curl(name: Receipt = None, *, as_json: AsJson = False) -> None:
    """The command that sends it again. The token is not in it: `eval "$(reef env)"` sets REEF_TOKEN."""
    client = ensure_daemon(home())
    command = exchanges.curl(client, _receipt(client, name))
    output.told({"command": command}, command, as_json)


def _receipt(client: Client, name: str | None) -> str:
    return str(client.get("/reef/last")["receipt"]) if name is None else resolved(client, name, "receipt")
