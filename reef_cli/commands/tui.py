"""`reef` and `reef tui`: the dashboard. It starts no daemon by itself; `s` does."""

import gc
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from daemon.core.errors import ExitCode, UsageError
from daemon.core.paths import home
from reef_cli import diagnostics, output
from reef_cli.parameters import AsJson, Help
from reef_cli.tui.themes import Theme

if TYPE_CHECKING:
    from reef_cli.tui.app import Dashboard
    from reef_cli.tui.settings import Settings

_LINES = "reef status, reef traces list; or ACCESSIBLE=1 reef for lines"
_SPEEDS = (0.1, 100.0)


def tui(
    *,
    theme: Annotated[
        Theme | None,
        Help("Colours: ansi is the terminal's own, safe for any colour vision [default: tui.yaml's, or ansi]."),
    ] = None,
    no_mouse: Annotated[bool, Help("Leave the mouse to the terminal.")] = False,
    record: Annotated[
        str | None, Help("Keep what the dashboard is told in this new file: a demo, a bug report.")
    ] = None,
    replay: Annotated[str | None, Help("Play such a file; no daemon is asked.")] = None,
    speed: Annotated[str | None, Help("How fast to play it; 1 is as it was.")] = None,
    as_json: AsJson = False,
) -> int:
    """ACCESSIBLE=1 makes it labelled lines; NO_COLOR=1 leaves the colours out. `?` tells every key. A recording holds
    what was on the screens, as the daemon stored it: read it before you give it away.
    """
    pace = _checked(record, replay, speed)
    if as_json:
        raise UsageError("the dashboard has no JSON", hint="reef status --json, reef traces list --json")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the dashboard needs a terminal", hint="reef status, or reef traces list")
    if os.environ.get("ACCESSIBLE") == "1":
        return _lines()
    if os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("the dashboard needs a terminal that can place the cursor; TERM=dumb cannot", hint=_LINES)
    gc.disable()  # until the first screen stands: what the imports make stays, and looking at it costs 10 ms
    settings = _settings(theme)
    if record is not None:
        return _recorded(Path(record).expanduser(), settings, mouse=not no_mouse)
    dashboard = _live(settings) if replay is None else _played(Path(replay).expanduser(), pace, settings)
    return _run(dashboard, mouse=not no_mouse)


def _checked(record: str | None, replay: str | None, speed: str | None) -> float:
    """How fast to play."""
    if record is not None and replay is not None:
        raise UsageError("--record and --replay do not go together", hint="reef tui --replay FILE")
    if speed is not None and replay is None:
        raise UsageError("--speed is of a recording", hint="reef tui --replay FILE --speed 2")
    if (record or replay) is not None and os.environ.get("ACCESSIBLE") == "1":
        raise UsageError("the lines of ACCESSIBLE=1 are not recorded, nor played", hint=_LINES)
    try:
        pace = float(speed or 1)
    except ValueError:
        pace = math.nan
    if not _SPEEDS[0] <= pace <= _SPEEDS[1]:
        raise UsageError(f"--speed {speed} is not a number between {_SPEEDS[0]:g} and {_SPEEDS[1]:g}")
    return pace


def _settings(theme: Theme | None) -> "Settings":
    """The home's; NO_COLOR and ``--theme`` say more."""
    from dataclasses import replace

    from reef_cli.tui.settings import load

    kept = load(home())
    return replace(kept, theme="ansi" if os.environ.get("NO_COLOR") else theme or kept.theme)


def _live(settings: "Settings") -> "Dashboard":
    from time import time_ns

    from reef_cli.tui.app import Dashboard

    return Dashboard(home(), now=time_ns, settings=settings)


def _played(path: Path, speed: float, settings: "Settings") -> "Dashboard":
    from reef_cli.tui.replay import Replay, load

    recording = load(path)

    from reef_cli.tui.app import Dashboard

    player = Replay(recording, speed=speed)
    return Dashboard(home(), now=player.now_ns, settings=settings, connect=lambda _timeout: player)


def _recorded(path: Path, settings: "Settings", *, mouse: bool) -> int:
    from time import time_ns

    from reef_cli.tui.app import Dashboard
    from reef_cli.tui.recording import Tape

    tape, place = Tape(path), home()
    dashboard = Dashboard(
        place, now=time_ns, settings=settings, connect=lambda timeout: tape.client(place.socket, timeout)
    )
    try:
        return _run(dashboard, mouse=mouse)
    finally:
        if tape.ended:
            diagnostics.say(f"the recording ended early: {tape.ended}")
        tape.close()
        diagnostics.say(f"{output.size(tape.bytes)} in {output.visible(str(path))}; reef tui --replay plays it")


def _run(dashboard: "Dashboard", *, mouse: bool) -> int:
    dashboard.run(mouse=mouse)
    return dashboard.return_code or ExitCode.OK


def _lines() -> int:
    from reef_cli.lifecycle import ensure_daemon
    from reef_cli.main import main
    from reef_cli.tui.plain import run

    run(ensure_daemon(home()), main)
    return ExitCode.OK
