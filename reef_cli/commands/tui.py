"""`reef` and `reef tui`: the dashboard. It starts no daemon by itself; `s` does."""

import os
import sys
from typing import Annotated

from daemon.core.errors import ExitCode, UsageError
from daemon.core.paths import home
from reef_cli.parameters import AsJson, Help
from reef_cli.tui.themes import Theme

_LINES = "reef status, reef traces list; or ACCESSIBLE=1 reef for lines"


def tui(
    *,
    theme: Annotated[Theme, Help("Colours; ansi takes the terminal's own, safe is for any colour vision.")] = "ansi",
    no_mouse: Annotated[bool, Help("Leave the mouse to the terminal.")] = False,
    as_json: AsJson = False,
) -> int:
    """ACCESSIBLE=1 makes it labelled lines; NO_COLOR=1 leaves the colours out. `?` tells every key."""
    if as_json:
        raise UsageError("the dashboard has no JSON", hint="reef status --json, reef traces list --json")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the dashboard needs a terminal", hint="reef status, or reef traces list")
    if os.environ.get("ACCESSIBLE") == "1":
        return _lines()
    if os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("the dashboard needs a terminal that can place the cursor; TERM=dumb cannot", hint=_LINES)
    from time import time_ns

    from reef_cli.tui.app import Dashboard

    dashboard = Dashboard(home(), now=time_ns, theme="ansi" if os.environ.get("NO_COLOR") else theme)
    dashboard.run(mouse=not no_mouse)
    return dashboard.return_code or ExitCode.OK


def _lines() -> int:
    from reef_cli.lifecycle import ensure_daemon
    from reef_cli.main import main
    from reef_cli.tui.plain import run

    run(ensure_daemon(home()), main)
    return ExitCode.OK
