"""`reef traces list · search · stats · show · tail`: what the agents did. `reef_cli.conversation` says how it looks."""

import shlex
from typing import Annotated, Any

from daemon.core.client import Client
from daemon.core.errors import NotFound, Unreachable
from daemon.core.orders import Order
from daemon.core.paths import home
from reef_cli import conversation, diagnostics, output, pages
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import beginnings, resolved
from reef_cli.parameters import AsJson, Help

Query = Annotated[str | None, Help("Only what this finds, for example: agent:pi since:2d timeout")]
Limit = Annotated[int, Help("How many.", "--limit", "-n")]
Cursor = Annotated[str | None, Help("Go on from the `next` of the page before.", "--before", "--cursor")]

_NOTHING = 'eval "$(reef env)", then use an agent in that shell; or: reef demo'


def list_sessions(
    query: Query = None,
    *,
    limit: Limit = 20,
    before: Cursor = None,
    scenario: Annotated[str | None, Help("Only this scenario's.")] = None,
    sort: Annotated[Order, Help("Of all sessions, those with the most first.")] = Order.ACTIVITY,
    as_json: AsJson = False,
) -> None:
    """With a query, the sessions that have such records: `reef traces search --help` tells how one is written.

    Sorted, the list has the sessions with such a value; a query or a scenario keeps the order of activity.
    """
    wanted = {"scenario": scenario, "q": query, "sort": None if sort is Order.ACTIVITY else sort}
    page = ensure_daemon(home()).get("/reef/sessions", limit=limit, before=before, **wanted)
    if as_json:
        output.json(page)
        return
    columns = ("session", "updated", "agent", "turns", "in", "out", "score", "title")
    names = beginnings([session["id"] for session in page["items"]])
    output.table(columns, [_row(name, session) for name, session in zip(names, page["items"], strict=True)])
    asked = (f" {shlex.quote(query)}" if query else "") + f" -n {limit}"
    only = f" --scenario {shlex.quote(scenario)}" if scenario else ""
    only += f" --sort {sort}" if sort is not Order.ACTIVITY else ""
    if page["next"]:
        diagnostics.say(f"more: reef traces list{asked} --before {page['next']}{only}")
    elif not page["items"] and (scenario or before or query):
        diagnostics.say("no session here; all of them: reef traces list")
    elif not page["items"]:
        diagnostics.say(f"nothing yet: {_NOTHING}")


def search(
    query: Annotated[str, Help("What to find.")], *, limit: Limit = 20, before: Cursor = None, as_json: AsJson = False
) -> None:
    """Words, "phrases", -words and wor* all have to be in what a record added; fields narrow it down: agent, model,
    session, scenario, release (12 or an id), kind (main, subagent, side, retry), status (ok, error, incomplete,
    cancelled, failed or a number), is (pinned), has (feedback, note, error, tools, secret, signal), signal (turn, tool,
    refused, stopped, retried, left), score (good, bad, 1 or '>0.5'), tokens ('>50k'), cost ('>0.1'), latency ('>2s'),
    since and until (30m, 12h, 2d, 1w or a date). A minus before a field leaves it out; a query that begins with one
    comes after --.
    """
    page = ensure_daemon(home()).get("/reef/search", q=query, limit=limit, before=before)
    if as_json:
        output.json(page)
        return
    for hit in page["items"]:
        output.line(conversation.record_line(hit["record"], preview=not hit["snippet"]))
        if hit["snippet"]:
            output.line(f"  {output.one_line(hit['snippet'], 200)}")
    if page["unindexed"]:
        diagnostics.say(f"the newest {output.count(page['unindexed'], 'record')} can be searched in a moment")
    if page["next"]:
        diagnostics.say(f"more: reef traces search {shlex.quote(query)} -n {limit} --before {page['next']}")
    elif not page["items"]:
        diagnostics.say("nothing found; how a query is written: reef traces search --help")


def stats(
    *,
    since: Annotated[str | None, Help("From here on: 12h, 7d, 4w or a date.")] = None,
    hourly: Annotated[bool, Help("A line an hour, not a day.")] = False,
    by: Annotated[str | None, Help("Split by any of scenario, agent and model, with commas between.")] = None,
    scenario: Annotated[str | None, Help("Only this scenario's.")] = None,
    as_json: AsJson = False,
) -> None:
    """Turns are answers of the main line; what was tried again counts once. Hours and days are UTC."""
    page = ensure_daemon(home()).get(
        "/reef/rollups", unit="hour" if hourly else "day", since=since, by=by, scenario=scenario
    )
    if as_json:
        output.json(page)
        return
    split = tuple(name for name in ("scenario", "agent", "model") if name in (by or "").split(","))
    columns = ("from", "records", "turns", "failed", "retries", "in", "cached", "out", "cost", *split)
    output.table(columns, [_sums(row, split) for row in page["items"]])
    if not page["items"]:
        diagnostics.say("nothing in this time; further back: reef traces stats --since 52w")


def show(
    name: Annotated[str | None, Help("A session, a receipt, or the beginning of one; by default the last.")] = None,
    *,
    full: Annotated[bool, Help("Unfold system prompts, thinking, tool calls and their results.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tool calls and results are folded to a line each. Text from models and tools is shown inert."""
    client = ensure_daemon(home())
    found = _last(client) if name is None else resolved(client, name, "session", "receipt")
    if as_json:
        output.json(pages.whole(client, found))
        return
    for line in conversation.lines(pages.trace(client, found), full=full):
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


def _sums(row: dict[str, Any], split: tuple[str, ...]) -> tuple[object, ...]:
    names = ("records", "turns", "failed", "retries", "prompt_tokens", "cached_tokens", "completion_tokens")
    paid = output.dollars(row["cost_usd"])
    return (output.utc(row["start_ns"]), *(row[name] for name in names), paid, *(row[name] for name in split))


def _row(name: str, session: dict[str, Any]) -> tuple[object, ...]:
    return (
        name,
        output.clock(session["updated_ns"]),
        session["agent"],
        session["turns"],
        session["prompt_tokens"],
        session["completion_tokens"],
        session["score"],
        f"{'* ' if session['pinned'] else ''}{output.one_line(session['title'] or '', 60)}",
    )


def _last(client: Client) -> str:
    """The newest session, whether or not it was answered: one that failed is the one to look at."""
    newest = client.get("/reef/sessions", limit=1)["items"]
    if not newest:
        raise NotFound("nothing is recorded yet", hint=_NOTHING)
    return str(newest[0]["id"])
