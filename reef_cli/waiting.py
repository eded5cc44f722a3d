"""Waiting for what takes long: its progress on stderr as it gets on; of a job, the exit code that its end deserves."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from daemon.core.client import Client, segment, told_error
from daemon.core.errors import ExitCode, GateRefused, ReefError
from reef_cli import diagnostics, output
from reef_cli.names import only

_PAUSE_SECONDS = 0.3
_OVER = ("done", "failed", "cancelled")


def finished(
    client: Client, path: str, body: Mapping[str, object], result: str, *, in_bytes: bool = False
) -> dict[str, Any]:
    """POST, then the daemon's lines: progress (how far only where it is ``in_bytes``) until the one that has
    ``result``. Raises what the daemon tells.
    """
    progress = diagnostics.Progress()
    try:
        for line in client.lines(path, body):
            if "error" in line:
                raise told_error(line)
            if result in line:
                found: dict[str, Any] = line[result]
                return found
            progress.update(line["phase"], *((line["done"], line["total"]) if in_bytes else (0, None)))
    finally:
        progress.close()
    raise ReefError("the daemon ended before this was done", hint="the same again goes on with it; or: reef logs")


def followed(
    client: Client, job: Mapping[str, Any], say: Callable[[str], None] = lambda text: diagnostics.say(f"  {text}")
) -> dict[str, Any]:
    """Wait until it is over, telling what it does; the job as it ended."""
    told: tuple[object, ...] = ()
    said = ""
    while True:
        row: dict[str, Any] = client.get(f"/reef/jobs/{segment(str(job['id']))}")
        at = row["progress"] or {"step": row["state"], "done": 0, "total": 0, "note": ""}
        tenth = at["done"] * 10 // at["total"] if at["total"] else at["done"]
        now = (at["step"], tenth, row["message"])
        if now != told and row["state"] not in _OVER:
            told, text = now, progress(row) or row["state"]
            if text != said:
                say(text)
            said = text
        if row["state"] in _OVER:
            return row
        time.sleep(_PAUSE_SECONDS)


def ended(row: dict[str, Any]) -> int:
    """One line of what became of a job. Raises ReefError where it failed, GateRefused where the gate said no."""
    if row["state"] != "done":
        what = f"failed: {row['error']}" if row["state"] == "failed" else "was cancelled"
        raise ReefError(f"job {row['id']} {what}", hint=f"reef jobs show {row['id']}")
    release, rest = row["release_id"], only(row["scenario"])
    if row["outcome"] in ("rejected", "inconclusive"):
        hint = f"reef releases show {release}{rest}" if release else None
        raise GateRefused(f"{row['outcome']}: {row['message']}", hint=hint)
    output.line("  ".join(filter(None, [row["outcome"], row["release_id"], output.one_line(row["message"], 200)])))
    if row["outcome"] == "pending":
        diagnostics.say(f"it waits for you: reef releases show {release}{rest}, then approve or reject")
    if row["outcome"] == "kept":
        diagnostics.say(f"it is kept: reef releases approve {release}{rest} releases it")
    if row["outcome"] == "nothing":
        diagnostics.say(f"what {row['recipe']} learns from: reef recipes list; give it some: reef note, reef edit")
    return ExitCode.OK


def refused(row: dict[str, Any]) -> int:
    """The exit code of the same, for an answer in JSON."""
    if row["state"] != "done":
        return ExitCode.FAILED
    return ExitCode.GATE if row["outcome"] in ("rejected", "inconclusive") else ExitCode.OK


def progress(row: dict[str, Any]) -> str:
    """Where a job is, in a few words."""
    at = row["progress"]
    if at is None:
        return str(row["message"])
    amount = f" {at['done']} of {at['total']}" if at["total"] else f" {at['done']}" if at["done"] else ""
    said = at["note"] or row["message"]
    return output.one_line(f"{at['step']}{amount}{f', {said}' if said else ''}", 100)
