"""`reef start · stop · restart · serve`."""

from pathlib import Path
from typing import Annotated, Any

from daemon.core.errors import ConfigError
from daemon.core.paths import home
from reef_cli import lifecycle, output
from reef_cli.parameters import AsJson, Help


def start(*, as_json: AsJson = False) -> None:
    """Commands that need the daemon start it by themselves; this one is for scripts and for looking."""
    already = lifecycle.lives(home())
    _tell(lifecycle.ensure_daemon(home()).get("/reef/status"), "runs already" if already else "runs", as_json)


def stop(*, as_json: AsJson = False) -> None:
    stopped = lifecycle.stop_daemon(home())
    if as_json:
        output.json({"stopped": stopped})
    else:
        output.line("reef stopped" if stopped else "reef was not running")


def restart(*, as_json: AsJson = False) -> None:
    """Requests in flight are finished first, at most 30 seconds."""
    lifecycle.stop_daemon(home())
    _tell(lifecycle.ensure_daemon(home()).get("/reef/status"), "runs again", as_json)


def serve(
    *,
    config: Annotated[Path | None, Help("Configuration file; else $REEF_HOME/config.yaml.", "--config", "-c")] = None,
    as_json: Annotated[bool, Help("Errors in JSON.", "--json")] = False,
) -> None:
    """Logs to the terminal, ends with ctrl+c. A recipe that cannot be loaded is told, and recording goes on."""
    import os
    import sys

    command = [*lifecycle.DAEMON, "--foreground"]
    if config is not None:
        if not config.is_file():
            raise ConfigError(f"no configuration at {config}", hint="reef config show")
        command += ["--config", str(config.absolute())]
    sys.stdout.flush()
    os.execv(command[0], command)


def _tell(status: dict[str, Any], what: str, as_json: bool) -> None:
    if as_json:
        output.json({"running": True, "pid": status["pid"], "url": status["url"], "version": status["version"]})
    else:
        output.line(f"reef {what}: {status['url']}/v1 (pid {status['pid']})")
