"""`reef traces list · show · tail`: what the agents did. `reef_cli.conversation` says how it looks."""

from collections.abc import Iterator
from typing import Annotated, Any

from daemon.core.errors import NotFound, UsageError
from daemon.core.paths import home
from reef_cli import conversation, diagnostics, output
from reef_cli.client import Client, segment
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help

_PAGE = 500
#: How far back a prefix is looked for.
_PREFIX_PAGES = 20


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
    output.table(columns, [_row(session) for session in page["items"]])
    if page["next"]:
        diagnostics.say(f"more: reef traces list --before {page['next']}")
    elif not page["items"]:
        diagnostics.say('nothing yet: eval "$(reef env)" and use an agent in that shell, or reef demo')


def show(
    name: Annotated[str | None, Help("A session, a receipt, or the beginning of one; by default the last.")] = None,
    *,
    full: Annotated[bool, Help("Unfold system prompts, thinking, tool calls and their results.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tool calls and results are folded to a line each. Text from models and tools is shown inert."""
    client = ensure_daemon(home())
    trace = client.get(f"/reef/traces/{segment(_resolved(client, name))}")
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
            output.line(f"{'report':<9}{conversation.report_line(data)}")


def _row(session: dict[str, Any]) -> tuple[object, ...]:
    return (
        session["id"],
        output.clock(session["updated_ns"]),
        session["agent"],
        session["turns"],
        session["prompt_tokens"],
        session["completion_tokens"],
        session["score"],
        output.one_line(session["title"] or "", 60),
    )


def _resolved(client: Client, name: str | None) -> str:
    """The id that ``name`` means: itself, or the only recent session or receipt that begins so."""
    if name is None:
        return str(client.get("/reef/last")["session"])
    if len(name) >= len("ses_") + 26:
        return name
    matches: set[str] = set()
    for path, key in (("/reef/sessions", "id"), ("/reef/records", "receipt")):
        matches |= {found for row in _recent(client, path) if (found := str(row[key])).startswith(name)}
    if not matches:
        raise NotFound(f"no session or receipt begins with {name!r}", hint="reef traces list")
    if len(matches) > 1:
        some = ", ".join(sorted(matches)[:4])
        raise UsageError(f"{len(matches)} sessions and receipts begin with {name!r}", hint=f"for example {some}")
    return matches.pop()


def _recent(client: Client, path: str) -> Iterator[dict[str, Any]]:
    before = None
    for _ in range(_PREFIX_PAGES):
        page = client.get(path, limit=_PAGE, before=before)
        yield from page["items"]
        before = page["next"]
        if before is None:
            return
