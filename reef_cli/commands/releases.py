"""`reef releases list · show · diff · approve · reject · rollback · pin · unpin`: what agents run, and the way back.

What moves a head says what it moved. Going back, turning down and releasing what can act by itself ask first; in a
script ``--yes`` answers.
"""

import shlex
from typing import Annotated, Any, Literal

from daemon.core.client import Client, segment
from daemon.core.errors import ExitCode, NotFound
from daemon.core.paths import home
from reef_cli import decisions, diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help

Scenario = Annotated[str | None, Help("Whose releases; `default` when it is not given.")]
Yes = Annotated[bool, Help("Do not ask.", "--yes", "-y")]
Candidate = Annotated[str, Help("A candidate's id (r0-…), as `reef releases list --state pending` prints it.")]
State = Literal["released", "pending", "rejected", "kept", "all"]


def list_releases(
    *,
    limit: Annotated[int, Help("How many.", "--limit", "-n")] = 20,
    before: Annotated[str | None, Help("Go on from the `next` of the page before.")] = None,
    state: Annotated[State, Help("released, pending, rejected, kept or all.")] = "released",
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """The head is marked with a star, a release that clients are held at says so."""
    client = ensure_daemon(home())
    page = client.get("/reef/releases", limit=limit, before=before, state=state, scenario=scenario)
    if as_json:
        output.json(page)
        return
    columns = ("release", "created", "kind", "gate", "changes", "reason")
    output.table(columns, [_row(release, page["pinned"]) for release in page["items"]])
    only = _only(scenario)
    if page["next"]:
        diagnostics.say(f"more: reef releases list -n {limit} --state {state} --before {page['next']}{only}")
    elif not page["items"] and state == "released":
        diagnostics.say(
            "nothing is released here yet: the agent and the model are as they come\n"
            f"candidates: reef releases list --state all{only}\n"
            'to make one: reef evolve "what should change"'
        )
    elif not page["items"]:
        diagnostics.say(f"nothing here; all of them: reef releases list --state all{only}")


def show(
    release: Annotated[str | None, Help("A release (r5, r5-…) or a candidate; by default the head.")] = None,
    *,
    full: Annotated[bool, Help("With the whole texts of its harness.")] = False,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    client = ensure_daemon(home())
    told = client.get(f"/reef/releases/{segment(release or _head(client, scenario))}", scenario=scenario)
    if as_json:
        output.json(told)
        return
    output.line(output.visible(told["card"]))
    for name in ("note", "acts", "commit"):
        if told[name] and not (name == "acts" and told[name] in told["note"]):
            output.line(f"{name:<10}{output.visible(told[name], keep='')}")
    if told["pinned"]:
        output.line(f"{'pinned':<10}clients are held here: reef releases unpin{_only(scenario)}")
    for path, text in told["files_text"].items():
        output.line()
        output.line(output.bold(output.visible(path)))
        lines = text.rstrip().split("\n")
        for line in lines if full else lines[:_LINES]:
            output.line(f"  {output.visible(line)}")
        if not full and len(lines) > _LINES:
            output.line(f"  … {len(lines) - _LINES} more lines: --full")
    output.line()
    if told["state"] != "released":  # it is in no branch that a clone would bring
        force = " --force" if told["gate"] and told["gate"]["verdict"] == "reject" else ""
        output.line(f"to release it all the same: reef releases approve {told['id']}{force}{_only(scenario)}")
        return
    output.line("a copy that needs nothing of Reef:")
    for command in told["clone"]:
        output.line(f"  {output.visible(command)}")


_LINES = 12


def diff(
    release: Annotated[str | None, Help("A release or a candidate; by default the head.")] = None,
    *,
    against: Annotated[str | None, Help("Another release, or `base`; by default what it was made from.")] = None,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """Weights show as the hashes of their files."""
    client = ensure_daemon(home())
    path = f"/reef/releases/{segment(release or _head(client, scenario))}/diff"
    told = client.get(path, against=against, scenario=scenario)
    if as_json:
        output.json(told)
    elif told["diff"]:
        output.line(output.visible(told["diff"].rstrip("\n")))
    else:
        diagnostics.say("no difference")


def approve(
    candidate: Candidate,
    *,
    force: Annotated[bool, Help("Though the gate rejected it.")] = False,
    yes: Yes = False,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> int:
    """Exit code 6: the head has moved on since it was made. 7: the gate rejected it. What it changes that can act by
    itself is shown first, and needs a yes of its own.
    """
    client = ensure_daemon(home())
    path = f"/reef/releases/{segment(candidate)}"
    told = client.get(path, scenario=scenario)
    if told["acts"] and told["state"] != "released":
        if not (yes or as_json):
            output.line(output.visible(client.get(f"{path}/diff", scenario=scenario)["diff"].rstrip("\n")))
        if not diagnostics.confirmed(f"{candidate}: {output.visible(told['acts'], keep='')}. Release it?", yes=yes):
            return _left()
    page = client.get("/reef/releases", limit=1, scenario=scenario)
    _say("released", client.post(f"{path}/approve", {"force": force}, scope=scenario), as_json)
    if page["pinned"]:
        diagnostics.say(f"clients stay at {page['pinned']}, where they are held: reef releases unpin{_only(scenario)}")
    return ExitCode.OK


def reject(candidate: Candidate, *, yes: Yes = False, scenario: Scenario = None, as_json: AsJson = False) -> int:
    """It can still be approved later."""
    client = ensure_daemon(home())
    path = f"/reef/releases/{segment(candidate)}"
    client.get(path, scenario=scenario)  # asking makes no sense where it is not there
    if not diagnostics.confirmed(f"Turn {candidate} down?", yes=yes):
        return _left()
    _say("rejected", client.post(f"{path}/reject", {}, scope=scenario), as_json)
    return ExitCode.OK


def rollback(
    release: Annotated[str | None, Help("A release, or `base`: nothing evolved. By default the one before.")] = None,
    *,
    reason: Annotated[str, Help("Why; it stays with the release.")] = "",
    yes: Yes = False,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> int:
    """Requests in flight finish on what they started with. Nothing is lost: the release gone back from stays."""
    client = ensure_daemon(home())
    _head(client, scenario)  # asking makes no sense where there is nothing to go back from, or to
    if release is not None and release != "base":
        client.get(f"/reef/releases/{segment(release)}", scenario=scenario)
    where = release or "the release before"
    if not diagnostics.confirmed(f"Go back to {where} ({scenario or 'default'})?", yes=yes):
        return _left()
    body: dict[str, object] = {"to": release, "reason": reason}
    _say("rolled back", client.post("/reef/releases/rollback", body, scope=scenario), as_json)
    return ExitCode.OK


def pin(
    release: Annotated[str | None, Help("A release (r5, r5-…); by default the head.")] = None,
    *,
    yes: Yes = False,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> int:
    """Later releases are made, but no client gets them until `reef releases unpin`. An earlier one is released again
    first, as `reef releases rollback` does.
    """
    client = ensure_daemon(home())
    told = client.get(f"/reef/releases/{segment(release or _head(client, scenario))}", scenario=scenario)
    again = not (told["head"] or told["pinned"])
    if again and not diagnostics.confirmed(f"Go back to {told['id']} ({scenario or 'default'})?", yes=yes):
        return _left()
    _say("pinned", client.post("/reef/releases/pin", {"release": told["id"]}, scope=scenario), as_json)
    return ExitCode.OK


def unpin(*, scenario: Scenario = None, as_json: AsJson = False) -> None:
    """What was released meanwhile reaches each client between its sessions."""
    told = ensure_daemon(home()).post("/reef/releases/unpin", {}, scope=scenario)
    if as_json:
        output.json(told)
    else:
        output.line(f"unpinned  {told['id']} serves")


def _only(scenario: str | None) -> str:
    return f" --scenario {shlex.quote(scenario)}" if scenario else ""


def _left() -> int:
    diagnostics.say("nothing was changed")
    return ExitCode.FAILED


def _head(client: Client, scenario: str | None) -> str:
    page = client.get("/reef/releases", limit=1, scenario=scenario)
    if not page["items"]:
        raise NotFound(f"{scenario or 'default'!r} has no release yet", hint="reef releases list --state all")
    return str(page["items"][0]["id"])


def _say(word: str, release: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.json(release)
        return
    restores = f", what {release['restores']} was" if release["restores"] else ""
    output.line(output.visible(f"{word}  {release['id']}{restores}  {output.one_line(release['reason'])}"))


def _row(release: dict[str, Any], pinned: str | None) -> tuple[object, ...]:
    mark = ("*" if release["head"] else "") + (" pinned" if release["id"] == pinned else "")
    kind = release["kind"] if release["state"] == "released" else decisions.state(release)
    return (
        f"{release['id']}{mark}",
        output.clock(release["created_ns"]),
        kind,
        decisions.verdict(release),
        ", ".join(_holds(release)) or "nothing",
        output.one_line(release["reason"], 50),
    )


def _holds(release: dict[str, Any]) -> list[str]:
    harness = any(path.startswith("harness/") for path in release["files"])
    return [*(["harness"] if harness else []), *(["weights"] if release["weights"] else [])]
