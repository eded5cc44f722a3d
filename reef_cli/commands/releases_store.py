"""`reef releases gc · push`: the store of releases kept small, and kept elsewhere too."""

from typing import Annotated

from daemon.core.client import Client
from daemon.core.paths import home
from reef_cli import diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help


def _patient() -> Client:
    """For what takes as long as the disk and the line need."""
    client = ensure_daemon(home())
    client.timeout = None
    return client


def gc(
    *,
    days: Annotated[float | None, Help("Give up candidates that were turned down so many days ago or before.")] = None,
    as_json: AsJson = False,
) -> None:
    """Releases, and candidates that wait, stay. By default `releases.rejected_days` of the configuration."""
    body: dict[str, object] = {} if days is None else {"days": days}
    told = _patient().post("/reef/releases/gc", body)
    candidates, files = output.count(told["candidates"], "candidate"), output.count(told["large_files"], "large file")
    output.told(told, f"{told['bytes'] / 1e6:.1f} MB given back: {candidates}, {files}", as_json)


def push(
    remote: Annotated[
        str | None, Help("A folder, or an address git knows; by default `releases.remote` of the configuration.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Each scenario is a branch there, only ever moved forward. Credentials are git's own; nothing asks for a password.
    Weights go into a folder as they are, elsewhere through git-lfs.
    """
    diagnostics.say("pushing…")
    told = _patient().post("/reef/releases/push", {"remote": remote})
    if as_json:
        output.json(told)
        return
    for scenario in told["scenarios"]:
        output.line(output.visible(f"pushed  {scenario}  {told['remote']}", keep=""))
    if told["large_files"]:
        output.line(f"        with {output.count(told['large_files'], 'large file')}")
    if not told["scenarios"]:
        diagnostics.say("nothing is released yet: there is nothing to push")
