"""``POST /reef/harness/proposals``: a tree, or changes to one, that somebody would have a scenario's agents run.

Over the socket it is the person: whatever a harness may hold, kept until they approve it. An agent's token may propose
text alone, which the gate judges like a recipe's; what no task can judge, skills and prompts too, waits for the person.
Nothing here is released.
"""

import hashlib
import json
from dataclasses import replace
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from daemon.core import harness
from daemon.core.errors import Conflict, RecipeError, UsageError
from daemon.core.harness import Kind
from daemon.core.learning import TaskSet
from daemon.core.releases import Candidate, Release, ReleaseState
from daemon.learning import publish, taint
from daemon.learning.publish import Proposal
from daemon.server.control import answer, body, read, runtime
from daemon.server.heads import row
from daemon.server.releases import scenario_of
from daemon.server.runtime import Runtime
from daemon.store.releases import texts

RECIPE: Final = "proposal"
_FIELDS: Final = ("files", "whole", "reason", "release_id", "session", "scenario", "routing")
_FILES_MOST: Final = 200
_REASON_MOST: Final = 2000
_SESSION_MOST: Final = 200
#: An agent's: as large as anybody reads, as many as anybody decides about.
_AGENTS_FILES: Final = 20
_AGENTS_BYTES: Final = 100_000
_AGENTS_WAITING: Final = 8
#: In all scenarios: an agent names them as it likes.
_AGENTS_WAITING_ANYWHERE: Final = 40


async def propose(request: Request) -> Response:
    """``{files: {path: text | null}, whole?, reason?, release_id?}``; null removes, ``whole``: what is not named goes.
    A person may say ``routing`` too, {model asked for: model}: all of it, {} for none.

    201 with the candidate (``proposal_id``) that waits; 202 for one that the gate judges first.
    """
    daemon, data = runtime(request), await body(request)
    scenario, proposal = scenario_of(request, data), _proposal(data)
    proposal = replace(proposal, scenario=scenario, reason=_redacted(daemon, proposal.reason))
    if request.scope["reef.control"]:
        kept = await publish.propose(daemon, proposal)
        return answer(_told(kept) | {"acts": await read(daemon.releases.acts, kept)}, 201)
    _check_agents(daemon, proposal)
    head = (await read(daemon.releases.standing, scenario)).id
    if proposal.parent not in (None, head):
        raise Conflict(f"the head of {scenario!r} is {head}, not {proposal.parent}", hint="GET /reef/harness")
    tasks = await read(daemon.store.tasks, scenario, TaskSet.GATE)
    if not tasks or not all(_is_told(path) for path in proposal.harness):
        return answer(_told(await _waiting(daemon, proposal, head, data.get("session"))), 201)
    job = await _judged(daemon, proposal, data.get("session"))
    return answer({"proposal_id": job, "admitted": True, "reason": None, "release_id": head, "job": job}, 202)


def _proposal(data: dict[str, Any]) -> Proposal:
    """Raises UsageError naming the field and its value."""
    for name in data.keys() - set(_FIELDS):
        hint = "the harness is files here: GET /reef/harness has them" if name == "mutations" else None
        raise UsageError(f"unknown field {name!r:.40}", hint=hint or f"a proposal has {', '.join(_FIELDS)}")
    files, whole, reason = data.get("files"), data.get("whole", False), data.get("reason") or ""
    routing = _routing(data)
    files = {} if files is None and routing is not None else files
    if not isinstance(files, dict) or not (files or routing is not None) or len(files) > _FILES_MOST:
        raise UsageError(f"files {files!r:.80} does not map 1 to {_FILES_MOST} paths to texts")
    for path, text in files.items():
        if text is not None and not isinstance(text, str):
            raise UsageError(f"files: {path!r:.80} is {type(text).__name__}, not a text or null")
    if not isinstance(whole, bool):
        raise UsageError(f"whole {whole!r:.40} is neither true nor false")
    if not isinstance(reason, str) or len(reason) > _REASON_MOST:
        raise UsageError(f"reason {reason!r:.80} is not a text of at most {_REASON_MOST} characters")
    parent = data.get("release_id")
    if parent is not None and not isinstance(parent, str):
        raise UsageError(f"release_id {parent!r:.40} is not a release", hint="GET /reef/harness names the head")
    session = data.get("session")
    if session is not None and not (isinstance(session, str) and len(session) <= _SESSION_MOST):
        raise UsageError(f"session {session!r:.40} is not a session's id")
    return Proposal("", files, reason, parent, whole, routing=routing)


def _routing(data: dict[str, Any]) -> dict[str, str] | None:
    routing = data.get("routing")
    if routing is not None and not (isinstance(routing, dict) and all(isinstance(to, str) for to in routing.values())):
        raise UsageError(f"routing {routing!r:.80} does not map models that are asked for to models")
    return routing


def _redacted(daemon: Runtime, text: str) -> str:
    return daemon.redactor.redact(text.encode("utf-8", "replace"))[0].decode()


def _check_agents(daemon: Runtime, proposal: Proposal) -> None:
    """Raises UsageError, RecipeError for what an agent may not propose."""
    size = sum(len(text.encode("utf-8", "replace")) for text in proposal.harness.values() if text)
    if proposal.routing is not None:
        raise UsageError("which model answers is the person's own to change", hint="leave routing out")
    if proposal.whole:
        raise UsageError("an agent proposes changes, not a whole tree", hint="leave whole out")
    if len(proposal.harness) > _AGENTS_FILES or size > _AGENTS_BYTES:
        raise UsageError(
            f"{len(proposal.harness)} files of {size} bytes: an agent may propose {_AGENTS_FILES} files of "
            f"{_AGENTS_BYTES} bytes"
        )
    for path, text in proposal.harness.items():
        if text is None:
            texts.check_place(path)
        else:
            texts.check(path, text)
            if _redacted(daemon, text) != text:
                raise RecipeError(
                    f"harness/{path}: it holds a secret, which every agent would be told",
                    hint="say where it is found, not what it is",
                )


def _told(kept: Release) -> dict[str, Any]:
    """The candidate, in the protocol's words too."""
    return row(kept) | {"proposal_id": kept.id, "admitted": True, "release_id": kept.id}


def _is_told(path: str) -> bool:
    """Whether the gate can judge the file: it asks the model, with what agents tell it in every request."""
    found = harness.entry(path)
    return found is not None and found.kind in (Kind.RULES, Kind.PLAYBOOK, Kind.MEMORY)


async def _waiting(daemon: Runtime, proposal: Proposal, head: str, session: str | None) -> Release:
    """Kept for the person. Raises Conflict when as many wait as anybody wants to decide about."""
    said = json.dumps([proposal.scenario, head, dict(proposal.harness)], sort_keys=True)
    candidate = Candidate(
        scenario=proposal.scenario, parent=head, reason=proposal.reason or "proposed by an agent", recipe=RECIPE,
        job=f"agent-{hashlib.sha256(said.encode('utf-8', 'replace')).hexdigest()[:32]}", harness=proposal.harness,
        config={"session": session} if session else {},
    )  # fmt: skip
    waiting = await read(daemon.releases.waiting)
    agents = [one for one in waiting if one.recipe == RECIPE]
    here = [one for one in agents if one.scenario == proposal.scenario]
    full = len(here) >= _AGENTS_WAITING or len(agents) >= _AGENTS_WAITING_ANYWHERE
    if full and all(one.job != candidate.job for one in here):
        raise Conflict(f"{len(agents)} proposals of agents wait already", hint="a person decides: reef releases list")
    note = "an agent proposed it, and there is no task that can judge it"
    if words := await read(taint.quoted, daemon.store.learning, {}, proposal.harness):
        note += f'; a tool or a file said the same: "{words}…"'
    kept = await read(daemon.releases.propose, candidate, None, ReleaseState.PENDING, note)
    if kept.state is ReleaseState.PENDING:
        await daemon.heads.told(kept, "agent")
    return kept


async def _judged(daemon: Runtime, proposal: Proposal, session: str | None) -> str:
    """The id of the job that judges it; the same proposal is judged once at a time."""
    config = {"files": dict(proposal.harness), "reason": proposal.reason, "session": session}
    jobs = [job for job in await read(daemon.store.learning.open_jobs) if job.recipe == RECIPE]
    for job in jobs:
        if job.scenario == proposal.scenario and dict(job.config) == config:
            return job.id
    if len(jobs) >= _AGENTS_WAITING:
        raise Conflict(f"{len(jobs)} proposals of agents are being judged already", hint="reef jobs list")
    return (await daemon.learning.jobs.submit(proposal.scenario, RECIPE, config)).id
