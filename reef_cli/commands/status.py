"""`reef status`: what runs and what it has done, in at most 24 lines. It starts nothing."""

import time
from typing import Any

from daemon.core.client import Client
from daemon.core.errors import ExitCode, Unreachable
from daemon.core.paths import home
from daemon.core.version import PROTOCOL, __version__
from reef_cli import lifecycle, output
from reef_cli.parameters import AsJson

_MOST_LINES = 24
_MOST_HEADS = 2


def status(*, as_json: AsJson = False) -> int:
    """Exit code 3 when the daemon is down; then it says since when, and why."""
    place = home()
    try:
        told: dict[str, Any] = Client(place.socket).get("/reef/status")
    except Unreachable as error:
        if not isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError):
            raise
        return _down(lifecycle.down(place), str(place.root), as_json)
    if as_json:
        output.json({"running": True, **told})
        return ExitCode.OK
    if told["protocol"] != PROTOCOL:  # its other fields may mean something else, or be missing
        output.line(f"reef {output.visible(told['version'])} runs, pid {told['pid']}; this command is {__version__}")
        output.line("\nnext: reef restart")
        return ExitCode.OK
    tail = ["", f"next: {_next(told)}"]
    for line in (_lines(told))[: _MOST_LINES - len(tail)] + tail:
        output.line(line)
    return ExitCode.OK


def _down(why: lifecycle.Down, root: str, as_json: bool) -> int:
    if as_json:
        output.json({"running": False, "reason": why.reason, "since_ns": why.since_ns, "pid": why.pid, "home": root})
    else:
        since = f", last sign of life {output.clock(why.since_ns)}" if why.since_ns else ""
        output.line(f"reef is not running: {why.reason}{since}")
        output.line(f"{'home':<11}{output.visible(root)}")
        output.line("\nnext: reef start")
    return ExitCode.UNREACHABLE


def _lines(told: dict[str, Any]) -> list[str]:
    counts, recording, last = told["counts"], told["recording"], told["last"]
    lines = [
        output.bold(f"reef {told['version']} runs")
        + f" since {output.clock(told['started_ns'])} ({output.duration(told['uptime_s'])}), pid {told['pid']}",
        _field("agents", f"{told['url']}/v1"),
        *(_field("engine", _engine(engine, told["default_engine"])) for engine in told["engines"]),
        _field("model", told["model"] or "none yet"),
        _field(
            "recorded",
            f"{output.count(counts['records'], 'record')} in {output.count(counts['sessions'], 'session')}, "
            f"{output.count(counts['reports'], 'report')}",
        ),
    ]
    if recording["state"] == "paused":
        until = f"until {output.clock(recording['until_ns'])}" if recording["until_ns"] else "until reef resume"
        lines.append(_field("recording", f"paused {until}"))
    elif recording["state"] != "on":
        lines.append(_field("recording", f"degraded: {recording['detail']} ({recording['unrecorded']} not recorded)"))
    if last:
        ago = output.duration((time.time_ns() - last["started_ns"]) / 1e9)
        lines.append(_cut("last", f"{last['receipt']}, {ago} ago: {last['preview'] or ''}"))
    lines += [*_releases(told), *_jobs(told)]
    lines.append(_field("config", told["config_path"] or "defaults"))
    lines.append(_field("home", told["home"]))
    lines.append(_field("log", told["log"]))
    if told["version"] != __version__:
        lines.append(_field("note", f"this command is {__version__}: the next one that needs the daemon replaces it"))
    lines += [_field("note", note) for note in told["notes"]]
    return lines


def _releases(told: dict[str, Any]) -> list[str]:
    """The newest heads and what waits, at most four lines."""
    heads: list[dict[str, Any]] = told["releases"]
    lines = []
    for head in heads[:_MOST_HEADS]:
        ago = output.duration((time.time_ns() - head["created_ns"]) / 1e9)
        said = f"{head['verdict']}ed" if head["verdict"] == "accept" and head["kind"] == "learned" else head["kind"]
        lines.append(_cut("release", f"{head['scenario']}: {head['release_id']}, {ago} ago, {said}: {head['reason']}"))
    if len(heads) > _MOST_HEADS:
        lines.append(_field("", f"and of {len(heads) - _MOST_HEADS} more scenarios"))
    if waiting := told["waiting"]:
        lines.append(
            _field("waiting", f"{output.count(len(waiting), 'candidate')} for your yes: {', '.join(waiting[:2])}")
        )
    return lines


def _jobs(told: dict[str, Any]) -> list[str]:
    """What learns now, one line."""
    if not (jobs := told["jobs"]):
        return []
    more = f", and {len(jobs) - 1} more" if len(jobs) > 1 else ""
    job = next((job for job in jobs if job["state"] == "running"), jobs[0])
    return [_cut("job", f"{job['recipe']} for {job['scenario']}, {job['state']}{more}: reef jobs list")]


def _engine(engine: dict[str, Any], default: str) -> str:
    state = "asleep, the next request loads the model" if engine["state"] == "off" else engine["state"]
    words = [f"{engine['name']}: {state}"]
    if engine["state"] == "loading" and engine["progress"] is not None:
        words.append(f"{engine['progress']:.0%}")
    if engine["memory_mb"]:
        words.append(f"{engine['memory_mb']} MB")
    if engine["tokens_per_second"]:
        words.append(f"{engine['tokens_per_second']:.0f} tokens/s")
    if engine["cache_hit"] is not None:
        words.append(f"{engine['cache_hit']:.0%} cached")
    if engine["running"] or engine["waiting"]:
        words.append(f"{engine['running']} running, {engine['waiting']} waiting")
    if engine["restarts"]:
        words.append(output.count(engine["restarts"], "restart"))
    if engine["detail"]:
        words.append(output.one_line(engine["detail"], 60))
    return ", ".join(words) + ("  (default)" if engine["name"] == default else "")


def _next(told: dict[str, Any]) -> str:
    default = next((engine for engine in told["engines"] if engine["name"] == told["default_engine"]), None)
    if told["recording"]["state"] == "paused":
        return "reef resume"
    if default and default["state"] in ("missing", "failed"):
        return "reef doctor" if told["model"] else "reef models add default"
    if told["counts"]["records"] == 0:
        return 'eval "$(reef env)", then start your agent in this shell (or: reef demo)'
    if waiting := told["waiting"]:
        scenario = (told.get("waiting_in") or ["default"])[-1]
        only = "" if scenario == "default" else f" --scenario {scenario}"
        return f"reef releases show {waiting[-1]}{only}, then approve or reject"
    if told["jobs"]:
        return "reef jobs list"
    if told["releases"]:
        return "reef releases show"
    if told["counts"]["reports"]:
        return 'reef tasks add --help, then reef evolve "what should change"'
    return "reef good, or reef bad, on the last answer"


def _cut(name: str, text: str) -> str:
    """A field whose text may be long: on one line of a narrow terminal."""
    return _field(name, output.one_line(text, output.WIDE - 11))


def _field(name: str, text: str) -> str:
    return f"{name:<11}{output.visible(text, keep='')}"
