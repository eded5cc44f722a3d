"""`reef start · stop · restart · serve`."""

from pathlib import Path
from typing import Annotated, Any

from daemon.core.errors import ConfigError, ReefError
from daemon.core.paths import home
from reef_cli import diagnostics, lifecycle, output
from reef_cli.parameters import AsJson, Help

#: How long a daemon that the session's manager started may take until it answers.
_HANDED_OVER_SECONDS = 20.0


def start(
    *,
    at_login: Annotated[bool, Help("Also whenever you log in, from now on.", "--at-login")] = False,
    as_json: AsJson = False,
) -> None:
    """Commands that need the daemon start it by themselves; this one is for scripts and for looking.

    --at-login writes a systemd user unit, on macOS a launch agent; `reef stop --at-login` removes it.
    """
    already = lifecycle.lives(home())
    if at_login:
        _at_login()
    _tell(lifecycle.ensure_daemon(home()).get("/reef/status"), "runs already" if already else "runs", as_json)


def stop(
    *,
    at_login: Annotated[bool, Help("And no longer start it when you log in.", "--at-login")] = False,
    as_json: AsJson = False,
) -> None:
    undone = False
    if at_login:
        from reef_cli import login  # not for a plain stop: subprocess is 10 ms of its 60

        undone = login.uninstall(home())
        diagnostics.say("it no longer starts at login" if undone else "it was not set up to start at login")
    stopped = lifecycle.stop_daemon(home()) or undone
    output.told({"stopped": stopped}, "reef stopped" if stopped else "reef was not running", as_json)


def _at_login() -> None:
    """Set it up, and hand over to what starts it from now on."""
    from reef_cli import login

    home().prepare()
    lifecycle.check_config(home())
    manager = login.here()
    fresh = login.install(home(), manager)
    path, _ = manager.file(home())
    diagnostics.say(f"starts at login: {path}" if fresh else f"starts at login already: {path}")
    if note := manager.note():
        diagnostics.say(note)
    if not fresh and lifecycle.lives(home()):
        return
    lifecycle.stop_daemon(home())
    try:
        manager.start(path)
        lifecycle.answers_soon(home(), _HANDED_OVER_SECONDS)
    except ReefError as error:
        diagnostics.say(f"{error.message}; it is started without for now")


def restart(*, as_json: AsJson = False) -> None:
    """Requests in flight are finished first, at most 30 seconds. A configuration that is wrong stops nothing."""
    lifecycle.check_config(home())
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
