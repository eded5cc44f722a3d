"""What `reef status` and the dashboard's status screen tell: what runs and what it has done, a named fact a line."""

import time
from typing import Any

from daemon.core.version import __version__
from reef_cli import output

_MOST_HEADS = 2

#: A name and its text; not inert yet. An empty name goes on with the fact above it.
Fact = tuple[str, str]


def headline(told: dict[str, Any]) -> str:
    return f"reef {told['version']} runs"


def since(told: dict[str, Any]) -> str:
    return f"since {output.clock(told['started_ns'])} ({output.duration(told['uptime_s'])}), pid {told['pid']}"


def facts(told: dict[str, Any]) -> list[Fact]:
    """``told`` is the daemon's status."""
    counts, recording, last = told["counts"], told["recording"], told["last"]
    lines: list[Fact] = [
        ("agents", f"{told['url']}/v1"),
        *(("engine", _engine(engine, told["default_engine"])) for engine in told["engines"]),
        ("model", told["model"] or "none yet"),
        (
            "recorded",
            f"{output.count(counts['records'], 'record')} in {output.count(counts['sessions'], 'session')}, "
            f"{output.count(counts['reports'], 'report')}",
        ),
    ]
    if recording["state"] == "paused":
        until = f"until {output.clock(recording['until_ns'])}" if recording["until_ns"] else "until reef resume"
        lines.append(("recording", f"paused {until}"))
    elif recording["state"] != "on":
        lines.append(("recording", f"degraded: {recording['detail']} ({recording['unrecorded']} not recorded)"))
    if last:
        ago = output.duration((time.time_ns() - last["started_ns"]) / 1e9)
        lines.append(_cut("last", f"{last['receipt']}, {ago} ago: {last['preview'] or ''}"))
    lines += [*_releases(told), *_jobs(told)]
    lines.append(("config", told["config_path"] or "defaults"))
    lines.append(("home", told["home"]))
    lines.append(("log", told["log"]))
    if told["version"] != __version__:
        lines.append(("note", f"this command is {__version__}: the next one that needs the daemon replaces it"))
    lines += [("note", note) for note in told["notes"]]
    return lines


def _releases(told: dict[str, Any]) -> list[Fact]:
    """The newest heads and what waits, at most four lines."""
    heads: list[dict[str, Any]] = told["releases"]
    lines: list[Fact] = []
    for head in heads[:_MOST_HEADS]:
        ago = output.duration((time.time_ns() - head["created_ns"]) / 1e9)
        said = f"{head['verdict']}ed" if head["verdict"] == "accept" and head["kind"] == "learned" else head["kind"]
        pinned = f", clients held at {head['pinned']}" if head["pinned"] else ""
        words = f"{head['release_id']}{pinned}, {ago} ago, {said}: {head['reason']}"
        lines.append(_cut("release", f"{head['scenario']}: {words}"))
    if len(heads) > _MOST_HEADS:
        lines.append(("", f"and of {len(heads) - _MOST_HEADS} more scenarios"))
    if waiting := told["waiting"]:
        lines.append(("waiting", f"{output.count(len(waiting), 'candidate')} for your yes: {', '.join(waiting[:2])}"))
    return lines


def _jobs(told: dict[str, Any]) -> list[Fact]:
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


def next_command(told: dict[str, Any]) -> str:
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


def _cut(name: str, text: str) -> Fact:
    """A fact whose text may be long: on one line of a narrow terminal."""
    return name, output.one_line(text, output.WIDE - 11)
