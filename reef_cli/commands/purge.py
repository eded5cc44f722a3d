"""`reef traces purge` and `reef audit`: forgetting, and the log of what was decided."""

import os
from pathlib import Path
from typing import Annotated, Any

from daemon.core.client import Client
from daemon.core.errors import UsageError
from daemon.core.paths import home
from reef_cli import diagnostics, output, times
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import resolved
from reef_cli.parameters import AsJson, Help
from reef_cli.waiting import finished


def purge(  # noqa: PLR0913  # a flag each
    name: Annotated[str | None, Help("A session, a receipt, or the beginning of one.")] = None,
    *,
    before: Annotated[str | None, Help("Sessions whose last record is older: 30d, or 2026-01-31.")] = None,
    scenario: Annotated[str | None, Help("Only this scenario's.")] = None,
    repository: Annotated[Path | None, Help("Sessions in this folder or below.")] = None,
    pinned: Annotated[bool, Help("Pinned sessions, too; one that is named goes anyway.")] = False,
    dry_run: Annotated[bool, Help("Say what would go, and leave it.")] = False,
    yes: Annotated[bool, Help("Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Removes records with all that was said about them, from every file of Reef's and from the sums of `reef traces
    stats`. Where several things are given, all must hold. Releases and tasks stay, and so do agents' own transcripts.
    What goes by itself, after privacy.retention_days, stays in the sums.
    """
    if name is None and before is None and scenario is None and repository is None:
        raise UsageError("nothing says what is to be removed", hint="reef traces purge --help")
    client = ensure_daemon(home())
    wanted = _wanted(client, name, before, scenario=scenario, repository=repository)
    if pinned:
        wanted["pinned"] = True
    planned = finished(client, "/reef/purge", {**wanted, "dry_run": True}, "purged")
    if dry_run or not planned["records"]:
        _tell(planned, "would go", as_json)
        return
    if not diagnostics.confirmed(f"{_counted(planned)}{_golden(planned)} will be gone for good.", yes=yes):
        raise UsageError("nothing was removed")
    _tell(finished(client, "/reef/purge", wanted, "purged"), "gone", as_json)


def _wanted(
    client: Client, name: str | None, before: str | None, *, scenario: str | None, repository: Path | None
) -> dict[str, object]:
    wanted: dict[str, object] = {}
    if name is not None:
        found = resolved(client, name, "session", "receipt")
        wanted["sessions" if found.startswith("ses_") else "receipts"] = [found]
    if before is not None:
        wanted["before_ns"] = times.moment_ns(before, "--before")
    if scenario is not None:
        wanted["scenario"] = scenario
    if repository is not None:
        wanted["repository"] = os.path.abspath(repository.expanduser())  # noqa: PTH100  # links stay as an agent sent them
    return wanted


def _counted(purged: dict[str, Any]) -> str:
    return (
        f"{output.count(purged['records'], 'record')}, {output.count(purged['sessions'], 'session')}, "
        f"{output.count(purged['reports'], 'report')}, {output.count(purged['messages'], 'message')}"
    )


def _golden(planned: dict[str, Any]) -> str:
    """What a person should know before they say yes."""
    count = planned["pinned"]
    return f", {count} of the sessions pinned as golden," if count else ""


def _tell(purged: dict[str, Any], what: str, as_json: bool) -> None:
    if as_json:
        output.json(purged)
        return
    output.line(f"{what}: {_counted(purged)}")
    if purged["kept_messages"]:
        output.line(f"stays: {output.count(purged['kept_messages'], 'message')} that other records hold, too")
    if purged["kept_pinned"]:
        output.line(f"stays: {output.count(purged['kept_pinned'], 'pinned session')} (--pinned takes them, too)")
    if purged["releases"]:
        output.line(f"stays: what {', '.join(purged['releases'])} learned from it (reef releases rollback)")
    if purged["aside"]:
        output.line(f"stays: what damaged databases hold that were kept aside: {', '.join(purged['aside'])}")
    if what == "gone" and not purged["compacted"]:
        diagnostics.say("the database is large and was not written anew: pieces of rows may lie between others")


def audit(
    *,
    limit: Annotated[int, Help("How many.", "--limit", "-n")] = 20,
    verify: Annotated[bool, Help("Check the whole chain; exit code 1 where it is broken.")] = False,
    as_json: AsJson = False,
) -> int:
    """Feedback, releases, purges, pauses and uses of the control token, newest first, by ids alone. --verify prints the
    last hash: who keeps it can tell later whether anything up to it was changed or cut off.
    """
    client = ensure_daemon(home())
    if verify:
        return _verified(client.get("/reef/audit/check"), as_json)
    page = client.get("/reef/audit", limit=limit)
    if as_json:
        output.json(page)
        return 0
    rows = [(row["seq"], output.clock(row["at_ns"]), row["event"], _facts(row["facts"])) for row in page["items"]]
    output.table(("entry", "when", "what", "about"), rows)
    return 0


def _verified(told: dict[str, Any], as_json: bool) -> int:
    if as_json:
        output.json(told)
    elif told["wrong"]:
        output.line(f"broken: {told['wrong']}; {told['entries']} before it are sound")
    else:
        output.line(f"sound: {told['entries']} entries, the last has the hash {told['hash']}")
    return 1 if told["wrong"] else 0


def _facts(facts: dict[str, Any]) -> str:
    said = (f"{name} {value}" for name, value in facts.items() if value not in (None, "", [], False))
    return output.one_line(", ".join(said), 80)
