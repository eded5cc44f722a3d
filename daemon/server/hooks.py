"""Agents' own hooks, answered: feedback without a model, and a notice of a release where they have a place for one.

What runs in an agent is not to be held up or broken by Reef: whatever is not understood is answered ``{}``, which every
agent takes for "go on".
"""

import re
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from adapters.delivery import short
from daemon.core.errors import ReefError
from daemon.core.ids import new_id
from daemon.core.releases import Release
from daemon.learning.stream import number_of
from daemon.server.control import answer, body, read, runtime
from daemon.server.install import verdict
from daemon.server.ratings import Ratings
from daemon.server.releases import scenario_of
from daemon.store import inband
from daemon.store.inband import Said
from daemon.store.titles import one_line

#: A prompt with all that was pasted into it.
_MOST: Final = 4 << 20
#: Claude Code's hook sees a prompt as it was typed, commands included: its plugin's are ``/reef:good``.
_TYPED: Final = re.compile(r"\s*(?:/(?:reef[:-])?|reef-)(?P<word>good|bad|note)(?:\s+(?P<text>.*))?", re.DOTALL)
#: Beginnings of a session at which nothing has been told yet.
_STARTS: Final = ("startup", "resume")
_LINE: Final = 300
_YES: Final = ("1", "true", "yes")


async def claude_code(request: Request) -> Response:
    """``POST /reef/hook/claude-code?release=&scenario=&activated=``: any event of Claude Code's.

    2.1.332 sends the start of a session to no hook of type ``http``; a command can ask `notice` there.
    """
    try:
        event = await body(request, _MOST)
        scenario = scenario_of(request)
        return answer(await _answered(request, event, scenario))
    except ReefError:
        return answer({})


async def _answered(request: Request, event: dict[str, Any], scenario: str) -> dict[str, str]:
    name = event.get("hook_event_name")
    if name == "SessionStart" and event.get("source", _STARTS[0]) in _STARTS:
        return _message(await told(request, scenario))
    session = event.get("session_id")
    if "agent_id" in event or not isinstance(session, str):
        return {}
    if name == "Stop":
        return _message(await _astray(request, session, scenario, event.get("cwd")))
    prompt = event.get("prompt")
    said = typed(prompt) if name == "UserPromptSubmit" and isinstance(prompt, str) else None
    if said is None:
        return {}
    daemon = runtime(request)
    once = f"{session}\0{event.get('prompt_id') or new_id('req')}\0{prompt}".encode("utf-8", "replace")
    about = await read(daemon.store.last_under, session, scenario)
    words = await Ratings(daemon.store, daemon.recorder, daemon.changes).keep(said, about, once)
    return {"decision": "block", "reason": f"{inband.ANSWER}{words}"}


async def _astray(request: Request, session: str, scenario: str, cwd: object) -> str:
    """That a turn has ended of which nothing came here, though it would have been recorded: an address in the agent's
    own settings wins over the one it was given.
    """
    daemon = runtime(request)
    recorder, folder = daemon.recorder, cwd if isinstance(cwd, str) else None
    if await read(daemon.store.knows, session, scenario) or recorder.state().state != "on":
        return ""
    if await recorder.unrecorded(folder) is not None:
        return ""
    return (
        f"{inband.ANSWER}nothing of this session reaches Reef: ANTHROPIC_BASE_URL in your settings wins (reef doctor)"
    )


def typed(prompt: str) -> Said | None:
    """What a prompt says to Reef."""
    found = _TYPED.fullmatch(prompt)
    return None if found is None else Said(found["word"], (found["text"] or "").strip())  # type: ignore[arg-type]


async def notice(request: Request) -> Response:
    """``GET /reef/notice?release=&scenario=&activated=``: one line for whoever runs that release, or nothing. With
    ``form=hook`` as Claude Code and Codex take it from a command.
    """
    found = await told(request, scenario_of(request))
    if request.query_params.get("form") == "hook":
        return answer(_message(found))
    return PlainTextResponse(f"{found}\n" if found else "")


def _message(words: str) -> dict[str, str]:
    return {"systemMessage": words} if words else {}


async def told(request: Request, scenario: str) -> str:
    """What the request's run should know; empty where it has what its scenario serves, and had it before."""
    daemon, running = runtime(request), request.query_params.get("release", "")
    served = daemon.heads.served(scenario)
    newer = served.number > number_of(running)
    activated = request.query_params.get("activated") in _YES and served.release_id == running
    if not running or not served.number or not (newer or activated):
        return ""
    return line(await read(daemon.releases.get, scenario, served.release_id), running if newer else None)


def line(release: Release, older: str | None) -> str:
    """``Reef: release r4 · why · accepted 9-0``; ``older``: what the session runs instead."""
    parts = [f"release {short(release.id)}", release.reason, verdict(release)]
    parts += [f"this session runs {short(older)}"] if older else []
    return f"{inband.ANSWER}{one_line(' · '.join(part for part in parts if part), _LINE)}"
