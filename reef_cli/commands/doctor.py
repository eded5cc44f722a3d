"""`reef doctor`: all that Reef needs, a line each: ok, warn or fail, and the fix. Starts and repairs nothing."""

from dataclasses import asdict

from daemon.core.errors import ExitCode
from daemon.core.paths import home
from reef_cli import checks, output
from reef_cli.parameters import AsJson


def doctor(*, as_json: AsJson = False) -> int:
    """Exit code 1 when something fails; warnings alone are 0."""
    made = []
    for check in checks.everything(home()):
        made.append(check)
        if not as_json:
            _print(check)
    failed = any(check.state == "fail" for check in made)
    if as_json:
        output.json({"ok": not failed, "checks": [asdict(check) for check in made]})
    return ExitCode.FAILED if failed else ExitCode.OK


def _print(check: checks.Check) -> None:
    mark = f"{check.state:<5}"
    output.line(
        f"{mark if check.state == 'ok' else output.bold(mark)}{check.name:<12}{output.visible(check.detail, keep='')}"
    )
    if check.fix:
        output.line(f"{'':17}fix: {output.visible(check.fix, keep='')}")
