"""How a harness reaches an agent: the release to run, what is newer, and the script that installs the wrapper.

Open to the agent token: an agent on this machine may read what it is to run, never change it. A release is handed out
with its manifest and signature, and whoever takes it checks them (`adapters.delivery`): this route vouches for nothing.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from adapters import agent, receipt, script
from adapters import plan as plans
from adapters.agent import Adapter
from adapters.machine import find_node
from adapters.plan import Choice
from daemon.core.errors import UsageError
from daemon.core.ids import CHECK
from daemon.core.paths import Home
from daemon.core.releases import BASE_RELEASE, Release, ReleaseKind, Verdict
from daemon.server.control import answer, read, runtime
from daemon.server.releases import scenario_of
from daemon.store.releases import Releases
from recipes.gate import card

_YES = ("1", "yes", "true")
_UPGRADES = ("auto", "ask", "pinned")
_DOWN = ("fail", "bypass")
_NEWER_MOST = 50
_VERSIONS_MOST = 1000
#: What an agent is told where the model is a provider's, whose window nobody here knows.
_REMOTE_CONTEXT = 128_000
#: An agent's own instructions alone may fill what holds fewer tokens (Claude Code's are 20,000).
_ROOMY = 32_000


async def harness(request: Request) -> Response:
    """``GET /reef/harness``: one release (``release_id``; else what serves), and what a wrapper needs beside it.

    The public client calls a release's id its version, when it asks and when it reads: both words are understood.
    """
    daemon, scenario = runtime(request), scenario_of(request)
    await read(agent.load, daemon.home, request.query_params.get("adapter", "pi"))
    wanted = request.query_params.get("release_id") or request.query_params.get("version")
    told = await read(delivered, daemon.releases, scenario, wanted)
    return answer(
        {
            **told,
            "artifact_version": told["release_id"],
            "scenario": scenario,
            "url": f"http://127.0.0.1:{daemon.port}",
            "models": daemon.router.model_names(),
            "context": daemon.context() or _REMOTE_CONTEXT,
        }
    )


async def newer(request: Request) -> Response:
    """``GET /reef/harness/releases?after=N``: releases of the chain after that number, newest first, up to the one that
    clients are held at."""
    daemon, scenario = runtime(request), scenario_of(request)
    after = request.query_params.get("after", "0")
    if not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise UsageError(f"after={after[:40]!r} is not a release's number", hint="for example after=3")
    rows, _ = await read(daemon.releases.list, scenario, _NEWER_MOST, None)
    last = daemon.heads.served(scenario).number if daemon.heads.held_at(scenario) else None
    return answer([_facts(row) for row in rows if row.number > int(after) and (last is None or row.number <= last)])


async def versions(request: Request) -> Response:
    """``GET /reef/harness/versions``: the chain as the public client lists it, the newest last."""
    rows, _ = await read(runtime(request).releases.list, scenario_of(request), _VERSIONS_MOST, None)
    told = [{"artifact_version": row.id, "parent": row.parent, **_facts(row)} for row in reversed(rows)]
    return answer({"versions": told})


async def adapters(request: Request) -> Response:
    """``GET /reef/harness/adapters``: which agents there are, and which of them are installed; ``problems``:
    what is wrong with other descriptions."""
    home = runtime(request).home
    items = []
    whole, wrong = await read(agent.found, home)
    for adapter in whole:
        found = await read(receipt.read, home.root, adapter.name)
        items.append(
            {
                "name": adapter.name,
                "version": adapter.version,
                "summary": adapter.summary,
                "modes": list(adapter.modes),
                "installed": found is not None,
                "command": str(home.commands / adapter.command) if found else None,
            }
        )
    return answer({"items": items, "next": None, "problems": [error.message for error in wrong]})


async def install(request: Request) -> Response:
    """``GET /reef/harness/install``: the plan as a script for sh, from the same data as `reef harness install`."""
    query, home = request.query_params, runtime(request).home
    adapter = await read(agent.load, home, query.get("adapter", "pi"))
    keep_keys = query.get("keep_keys") in _YES
    mode = _one_of(query.get("mode", adapter.first_mode(keep_keys=keep_keys)), agent.MODES, "mode")
    choice = Choice(
        scenario_of(request),
        _one_of(query.get("upgrade", "auto"), _UPGRADES, "upgrade"),  # type: ignore[arg-type]
        query.get("link") in _YES,
        mode,  # type: ignore[arg-type]
        _one_of(query.get("on_daemon_down", "bypass" if mode == "overlay" else "fail"), _DOWN, "on_daemon_down"),  # type: ignore[arg-type]
        query.get("agent_version"),
        keep_keys,
    )
    return Response(await read(_script, adapter, home, choice), media_type="text/x-shellscript")


def _script(adapter: Adapter, home: Home, choice: Choice) -> str:
    there = plans.find(adapter, home, choice.version)
    found = plans.found_plan(adapter, home, choice, there) if there else None
    if found is not None and not adapter.installs:
        return script.script(found)
    return script.script(plans.plan(adapter, home, choice, find_node()), found)


def _one_of(said: str, allowed: tuple[str, ...], what: str) -> str:
    if said not in allowed:
        raise UsageError(f"{what}={said[:40]!r} is none there is", hint=f"one of {', '.join(allowed)}")
    return said


async def check(request: Request) -> Response:
    """``GET /reef/harness/check?run=check_…``: whether a request of that run has come, see `daemon.server.checks`, and
    what to look at where none has."""
    run = request.query_params.get("run", "")
    if not run.startswith(CHECK):
        raise UsageError(f"run={run[:40]!r} is no check", hint=f"an id that begins with {CHECK}")
    daemon = runtime(request)
    holds, hint = daemon.context(), "reef doctor"
    if holds is not None and holds < _ROOMY:
        hint += f"; what answers holds {holds:,} tokens, which may be too few: name a provider in {daemon.home.config}"
    return answer({"run": run, "seen": run in daemon.checks, "hint": hint})


def delivered(releases: Releases, scenario: str, wanted: str | None) -> dict[str, Any]:
    """A release as it is handed out; None: what serves, which may be the base. Raises NotFound, Untrusted."""
    if wanted and wanted != BASE_RELEASE:
        release: Release | None = releases.get(scenario, wanted)
    else:
        release = None if wanted else releases.serving(scenario)
    if release is None:
        return {
            "release_id": BASE_RELEASE, "number": 0, "parent": None, "files": {}, "manifest": None, "signature": None,
            "kind": None, "reason": "", "verdict": "", "card": "",
        }  # fmt: skip
    manifest, signature = releases.manifest(release)
    return {
        **_facts(release),
        "parent": release.parent,
        "files": releases.files(release),
        "manifest": manifest.decode(),
        "signature": signature,
        "key": releases.allowed,
        "card": card.text(release),
    }


def _facts(release: Release) -> dict[str, Any]:
    """What a notice tells."""
    named = ("number", "kind", "reason", "created_ns")
    return {"release_id": release.id, "verdict": verdict(release), **{name: getattr(release, name) for name in named}}


def verdict(release: Release) -> str:
    """How it came to be released, in a few words: ``accepted 9-0``."""
    gate = release.gate
    score = f"{gate.wins}\u2013{gate.losses}" if gate else ""
    if release.kind is ReleaseKind.ROLLBACK:
        return f"rolled back to {(release.restores or BASE_RELEASE).partition('-')[0]}"
    if release.kind is ReleaseKind.UNPROVEN or gate is None:
        return f"released without proof ({score})" if score else "released without proof"
    return f"{'accepted' if gate.verdict is Verdict.ACCEPT else gate.verdict.value} {score}"
