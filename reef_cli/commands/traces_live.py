"""`reef traces live`: the calls that are being answered, and one answer as it comes."""

from typing import Annotated, Any

from daemon.core.client import Client, segment
from daemon.core.errors import NotFound, Unreachable, UsageError
from daemon.core.paths import home
from reef_cli import diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help


def live(
    name: Annotated[str | None, Help("A receipt that the list shows, or the beginning of one.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Without a receipt, what is being answered now; with one, that answer from its first word, secrets replaced. With
    --json one line an event.
    """
    client = ensure_daemon(home())
    if name is not None:
        _follow(client, _receipt(client, name), as_json=as_json)
        return
    found = client.get("/reef/live")
    if as_json:
        output.json(found)
        return
    columns = ("receipt", "since", "agent", "scenario", "characters", "model")
    output.table(columns, [_row(call) for call in found["items"]])
    if not found["items"]:
        diagnostics.say("nothing is being answered now; as it comes: reef traces tail")


def _row(call: dict[str, Any]) -> tuple[object, ...]:
    since = output.clock(call["started_ns"])
    return call["receipt"], since, call["agent"], call["scenario"], call["chars"], call["model"]


def _receipt(client: Client, name: str) -> str:
    found = [call["receipt"] for call in client.get("/reef/live")["items"] if call["receipt"].startswith(name)]
    if len(found) > 1:
        raise UsageError(f"more than one call begins with {name!r}: {len(found)}", hint="reef traces live")
    if not found:
        raise NotFound(f"no call {name!r} is being answered", hint=f"reef traces show {name}")
    return str(found[0])


def _follow(client: Client, receipt: str, *, as_json: bool) -> None:
    kind = ""
    for event, data in client.events(f"/reef/live/{segment(receipt)}"):
        if as_json:
            output.jsonl({"event": event, "data": data})
        elif event == "text":
            if data["kind"] != kind:
                output.raw(("\n" if kind else "") + output.dim(f"[{data['kind']}]\n"))
                kind = data["kind"]
            output.raw(output.visible(data["text"]))
        if event == "cut":
            diagnostics.say("it goes on, but no more of it is kept for showing")
        if event == "end":
            if not as_json:
                output.line()
                diagnostics.say(f"it ended: {data['end']}; all of it: reef traces show {receipt}")
            return
    raise Unreachable("the daemon stopped", hint=f"reef traces show {receipt}")
