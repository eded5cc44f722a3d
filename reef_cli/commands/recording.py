"""`reef pause · resume`: whether what agents do is recorded. They are served all the same."""

from typing import Annotated, Any

from daemon.core.paths import home
from reef_cli import output, times
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help


def pause(
    *,
    span: Annotated[str | None, Help("Go on by itself after 30s, 10m, 2h or 1d.", "--for")] = None,
    as_json: AsJson = False,
) -> None:
    """Holds over restarts. Each answer's x-reef-recording header says so, and `reef status` does."""
    body = {} if span is None else {"seconds": times.seconds(span, "--for")}
    _tell(ensure_daemon(home()).post("/reef/pause", body), as_json)


def resume(*, as_json: AsJson = False) -> None:
    """What was not recorded meanwhile stays so."""
    _tell(ensure_daemon(home()).post("/reef/resume", {}), as_json)


def _tell(state: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.json(state)
    elif state["state"] == "paused":
        until = f"until {output.clock(state['until_ns'])}" if state["until_ns"] else "until reef resume"
        output.line(f"recording is paused {until}; agents are served")
    else:
        output.line("recording is on")
