"""`reef jobs list · show · cancel`: runs of recipes, and how they ended."""

from typing import Annotated, Any

from daemon.core.client import Client, segment
from daemon.core.errors import NotFound
from daemon.core.paths import home
from reef_cli import diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import beginnings, resolved
from reef_cli.parameters import AsJson, Help
from reef_cli.waiting import ended, followed, progress, refused

Job = Annotated[str, Help("A job (job_…), or the beginning of its name.")]


def list_jobs(
    *,
    limit: Annotated[int, Help("How many.", "--limit", "-n")] = 20,
    before: Annotated[str | None, Help("Go on from the `next` of the page before.")] = None,
    scenario: Annotated[str | None, Help("Only this scenario's.")] = None,
    as_json: AsJson = False,
) -> None:
    page = ensure_daemon(home()).get("/reef/jobs", limit=limit, before=before, scenario=scenario)
    if as_json:
        output.json(page)
        return
    columns = ("job", "created", "scenario", "recipe", "state", "what")
    names = beginnings([job["id"] for job in page["items"]])
    output.table(columns, [_row(name, job) for name, job in zip(names, page["items"], strict=True)])
    if page["next"]:
        diagnostics.say(f"more: reef jobs list -n {limit} --before {page['next']}")
    elif not page["items"]:
        diagnostics.say('no job yet: reef evolve "…", or reef recipes run playbook')


def show(
    job: Annotated[str | None, Help("A job (job_…), or the beginning of its name; by default the newest.")] = None,
    *,
    follow: Annotated[bool, Help("Wait until it is over.", "--follow", "-f")] = False,
    as_json: AsJson = False,
) -> int:
    """With --follow the exit code is 7 when the gate did not accept its candidate."""
    client = ensure_daemon(home())
    name = _newest(client) if job is None else resolved(client, job, "job")
    row = client.get(f"/reef/jobs/{segment(name)}")
    if follow:
        row = followed(client, row)
    if as_json:
        output.json(row)
        return refused(row) if follow else 0
    _show(row)
    return ended(row) if follow else 0


def cancel(job: Job, *, as_json: AsJson = False) -> None:
    """Ends all its processes. What it had claimed may be learned from again."""
    client = ensure_daemon(home())
    row = client.post(f"/reef/jobs/{segment(resolved(client, job, 'job'))}/cancel", {})
    output.told(row, f"cancelled  {row['id']}", as_json)


def _newest(client: Client) -> str:
    jobs = client.get("/reef/jobs", limit=1)["items"]
    if not jobs:
        raise NotFound("there is no job yet", hint='reef evolve "…"')
    return str(jobs[0]["id"])


def _row(name: str, job: dict[str, Any]) -> tuple[object, ...]:
    return (name, output.clock(job["created_ns"]), job["scenario"], job["recipe"], _state(job), _what(job))


def _state(job: dict[str, Any]) -> str:
    return str(job["outcome"] or job["state"])


def _what(job: dict[str, Any]) -> str:
    if job["state"] in ("queued", "running"):
        return progress(job)
    return output.one_line(job["error"] or job["message"] or "", 60)


def _ends(points: list[tuple[int, float]]) -> str:
    """A curve in words: ``3.51 at 1, 0.42 at 14``."""
    ends = [points[0], *points[1:][-1:]]
    return ", ".join(f"{value:.3g} at {at}" for at, value in ends)


def _show(job: dict[str, Any]) -> None:
    output.line(output.bold(output.visible(str(job["id"]))) + f"  {_state(job)}")
    facts: dict[str, object] = {
        "recipe": job["recipe"],
        "scenario": job["scenario"],
        "settings": ", ".join(f"{name}={value}" for name, value in job["config"].items()),
        "created": output.clock(job["created_ns"]),
        "starts": job["attempts"],
        "learned": output.count(job["records"], "record"),
        "doing": progress(job) if job["state"] == "running" else "",
        "said": job["message"],
        "error": job["error"],
        "release": job["release_id"],
        "files": job["directory"],
    }
    facts |= {curve["name"]: _ends(curve["points"]) for curve in job["curves"]}
    for name, value in facts.items():
        if value not in (None, ""):
            output.line(f"  {name:<16} {output.visible(str(value), keep='')}")
    if job["log"]:
        output.line()
    for line in job["log"]:
        output.line(output.dim("  | ") + output.visible(line, keep="\t"))
