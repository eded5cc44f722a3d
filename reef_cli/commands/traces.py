"""`reef traces list · show · tail`: what the agents did. `reef_cli.conversation` says how it looks."""

import shlex
from typing import Annotated, Any

from daemon.core.client import Client, segment
from daemon.core.errors import NotFound, Unreachable
from daemon.core.paths import home
from reef_cli import conversation, diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import beginnings, resolved
from reef_cli.parameters import AsJson, Help

_NOTHING = 'eval "$(reef env)", then use an agent in that shell; or: reef demo'


def list_sessions(
    *,
    limit: Annotated[int, Help("How many.", "--limit", "-n")] = 20,
    before: Annotated[str | None, Help("Go on from the `next` of the page before.")] = None,
    scenario: Annotated[str | None, Help("Only this scenario's.")] = None,
    as_json: AsJson = False,
) -> None:
    page = ensure_daemon(home()).get("/reef/sessions", limit=limit, before=before, scenario=scenario)
    if as_json:
        output.json(page)
        return
    columns = ("session", "updated", "agent", "turns", "in", "out", "score", "title")
    names = beginnings([session["id"] for session in page["items"]])
    output.table(columns, [_row(name, session) for name, session in zip(names, page["items"], strict=True)])
    only = f" --scenario {shlex.quote(scenario)}" if scenario else ""
    if page["next"]:
        diagnostics.say(f"more: reef traces list -n {limit} --before {page['next']}{only}")
    elif not page["items"] and (scenario or before):
        diagnostics.say("no session here; all of them: reef traces list")
    elif not page["items"]:
        diagnostics.say(f"nothing yet: {_NOTHING}")


def show(
    name: Annotated[str | None, Help("A session, a receipt, or the beginning of one; by default the last.")] = None,
    *,
    full: Annotated[bool, Help("Unfold system prompts, thinking, tool calls and their results.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tool calls and results are folded to a line each. Text from models and tools is shown inert."""
    client = ensure_daemon(home())
    found = _last(client) if name is None else resolved(client, name, "session", "receipt")
    trace = client.get(f"/reef/traces/{segment(found)}")
    if as_json:
        output.json(trace)
        return
    for line in conversation.lines(trace, full=full):
        output.line(line)


def tail(*, as_json: AsJson = False) -> None:
    """Ends with ctrl+c. With --json one line an event."""
    for kind, data in ensure_daemon(home()).events("/reef/events"):
        if as_json:
            output.jsonl({"event": kind, "data": data})
        elif kind == "record":
            output.line(conversation.record_line(data))
        elif kind == "report":
            about = output.visible(", ".join(data["references"]), keep="")
            output.line(f"{output.clock(data['created_ns'])} {about} report {conversation.report_line(data)}")
    raise Unreachable("the daemon stopped", hint="reef traces tail")


def _row(name: str, session: dict[str, Any]) -> tuple[object, ...]:
    return (
        name,
        output.clock(session["updated_ns"]),
        session["agent"],
        session["turns"],
        session["prompt_tokens"],
        session["completion_tokens"],
        session["score"],
        output.one_line(session["title"] or "", 60),
    )


def _last(client: Client) -> str:
    """The newest session, whether or not it was answered: one that failed is the one to look at."""
    newest = client.get("/reef/sessions", limit=1)["items"]
    if not newest:
        raise NotFound("nothing is recorded yet", hint=_NOTHING)
    return str(newest[0]["id"])
