"""`reef status`: what runs and what it has done, in at most 24 lines. It starts nothing."""

from typing import Any

from daemon.core.client import Client
from daemon.core.errors import ExitCode, Unreachable
from daemon.core.paths import Home, home
from daemon.core.version import PROTOCOL, __version__
from reef_cli import lifecycle, output, standing
from reef_cli.parameters import AsJson

_MOST_LINES = 24


def status(*, as_json: AsJson = False) -> int:
    """Exit code 3 when the daemon is down; then it says since when, and why."""
    place = home()
    client = Client(place.socket)
    try:
        told: dict[str, Any] = client.get("/reef/status")
    except Unreachable as error:
        if not isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError):
            raise
        return _down(place, as_json)
    if told["protocol"] == PROTOCOL:
        lifecycle.send_waiting(place, client)
    if as_json:
        output.json({"running": True, **told})
        return ExitCode.OK
    if told["protocol"] != PROTOCOL:  # its other fields may mean something else, or be missing
        output.line(f"reef {output.visible(told['version'])} runs, pid {told['pid']}; this command is {__version__}")
        output.line("\nnext: reef restart")
        return ExitCode.OK
    tail = ["", f"next: {standing.next_command(told)}"]
    for line in (_lines(told))[: _MOST_LINES - len(tail)] + tail:
        output.line(line)
    return ExitCode.OK


def _down(place: Home, as_json: bool) -> int:
    why, waits = lifecycle.down(place), lifecycle.waiting(place)
    if as_json:
        told = {"running": False, "reason": why.reason, "since_ns": why.since_ns, "pid": why.pid}
        output.json({**told, "home": str(place.root), "feedback_waits": waits})
    else:
        since = f", last sign of life {output.clock(why.since_ns)}" if why.since_ns else ""
        output.line(f"reef is not running: {why.reason}{since}")
        output.line(f"{'home':<11}{output.visible(str(place.root))}")
        if waits:
            output.line(f"{'feedback':<11}{waits} said while no daemon ran; kept, sent to the next one")
        output.line("\nnext: reef start")
    return ExitCode.UNREACHABLE


def _lines(told: dict[str, Any]) -> list[str]:
    head = f"{output.bold(standing.headline(told))} {standing.since(told)}"
    return [head, *(_field(name, text) for name, text in standing.facts(told))]


def _field(name: str, text: str) -> str:
    return f"{name:<11}{output.visible(text, keep='')}"
