"""`reef releases list · approve · reject · rollback · pin · unpin`: what the agents run, and the way back.

What moves a head says what it moved. Going back, turning down and releasing what can act by itself ask first; in a
script ``--yes`` answers.
"""

from typing import Annotated, Any, Literal

from daemon.core.client import Client, segment
from daemon.core.errors import ExitCode, NotFound
from daemon.core.paths import home
from reef_cli import decisions, diagnostics, names, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import only
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
    more = only(scenario)
    if page["next"]:
        diagnostics.say(f"more: reef releases list -n {limit} --state {state} --before {page['next']}{more}")
    elif not page["items"] and (slip := names.unknown(client, scenario)):
        diagnostics.say(slip)
    elif not page["items"] and state == "released":
        diagnostics.say(
            "nothing is released here yet: the agent and the model are as they come\n"
            f"candidates: reef releases list --state all{more}\n"
            'to make one: reef evolve "what should change"'
        )
    elif not page["items"]:
        diagnostics.say(f"nothing here; all of them: reef releases list --state all{more}")


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
        diagnostics.say(f"clients stay at {page['pinned']}, where they are held: reef releases unpin{only(scenario)}")
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
    head(client, scenario)  # asking makes no sense where there is nothing to go back from, or to
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
    told = client.get(f"/reef/releases/{segment(release or head(client, scenario))}", scenario=scenario)
    again = not (told["head"] or told["pinned"])
    if again and not diagnostics.confirmed(f"Go back to {told['id']} ({scenario or 'default'})?", yes=yes):
        return _left()
    _say("pinned", client.post("/reef/releases/pin", {"release": told["id"]}, scope=scenario), as_json)
    return ExitCode.OK


def unpin(*, scenario: Scenario = None, as_json: AsJson = False) -> None:
    """What was released meanwhile reaches each client between its sessions."""
    told = ensure_daemon(home()).post("/reef/releases/unpin", {}, scope=scenario)
    output.told(told, f"unpinned  {told['id']} serves", as_json)


def _left() -> int:
    diagnostics.say("nothing was changed")
    return ExitCode.FAILED


def head(client: Client, scenario: str | None) -> str:
    """The id of what is released last. Raises NotFound."""
    page = client.get("/reef/releases", limit=1, scenario=scenario)
    if not page["items"]:
        slip = names.unknown(client, scenario)
        hint = f"reef releases list --state pending{only(scenario)}; or make one: reef harness edit{only(scenario)}"
        raise NotFound(
            slip.partition(";")[0] or f"{scenario or 'default'!r} has no release yet",
            hint="reef scenarios list" if slip else hint,
        )
    return str(page["items"][0]["id"])


def _say(word: str, release: dict[str, Any], as_json: bool) -> None:
    restores = f", what {release['restores']} was" if release["restores"] else ""
    output.told(
        release, output.visible(f"{word}  {release['id']}{restores}  {output.one_line(release['reason'])}"), as_json
    )


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
    parts = {"harness": harness, "weights": release["weights"], "routing": "routing.json" in release["files"]}
    return [name for name, there in parts.items() if there]
