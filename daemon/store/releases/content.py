"""What a candidate would hold: the incumbent's snapshot with its changes, as blobs, and the release that says so.

A recipe changes text; more takes a person (`texts`). Objects are written here, nothing names them yet.
"""

import hashlib
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from daemon.core import harness
from daemon.core.errors import RecipeError
from daemon.core.harness import BELOW
from daemon.core.plaintext import one_line
from daemon.core.releases import (
    PERSON,
    Candidate,
    GateResult,
    Release,
    ReleaseKind,
    ReleaseState,
    Verdict,
    Weights,
)
from daemon.store.releases import lfs, texts
from daemon.store.releases.commits import Snapshot
from daemon.store.releases.objects import Writer
from daemon.store.releases.weights import put_weights

#: Shown in lists, notices and Git's own log: one line, which acts on no terminal.
LONGEST_REASON: Final = 500
_NAMED: Final = 3


class Content(NamedTuple):
    """Path → blob, path → sha256; and the adapter among them."""

    blobs: Mapping[str, str]
    files: Mapping[str, str]
    weights: Weights | None


def content(writer: Writer, objects: lfs.Objects, candidate: Candidate, parent: Snapshot | None) -> Content:
    """Raises RecipeError for what may not be proposed, or is nothing new; BadWeights, StoreError."""
    blobs = dict(parent.blobs) if parent else {}
    files = dict(parent.release.files) if parent else {}
    before = dict(files)
    person = candidate.recipe == PERSON
    for path, text in candidate.harness.items():
        full = f"{BELOW}{path}"
        if text is None:
            texts.check_place(path, person=person)
            blobs.pop(full, None)
            files.pop(full, None)
            continue
        texts.check(path, text, person=person)
        raw = text.encode()
        blobs[full], files[full] = writer.blob(raw), hashlib.sha256(raw).hexdigest()
    texts.check_tree(files)
    if candidate.routing is not None:
        _put_routing(candidate, writer, blobs, files)
    if files == before and candidate.lora is None:
        raise RecipeError(f"nothing in it is different from {candidate.parent}", hint="reef releases show")
    weights = parent.release.weights if parent else None
    if candidate.lora is not None:
        weights = put_weights(candidate, writer, objects, blobs=blobs, files=files)
    return Content(blobs, files, weights)


def _put_routing(candidate: Candidate, writer: Writer, blobs: dict[str, str], files: dict[str, str]) -> None:
    if candidate.recipe != PERSON:
        raise RecipeError(f"{harness.ROUTING}: which model answers is the person's own to change")
    blobs.pop(harness.ROUTING, None)
    files.pop(harness.ROUTING, None)
    if candidate.routing:
        text = harness.dump_routing(candidate.routing)
        try:
            harness.routing(text)
        except ValueError as error:
            raise RecipeError(f"{harness.ROUTING}: {error}") from None
        raw = text.encode()
        blobs[harness.ROUTING], files[harness.ROUTING] = writer.blob(raw), hashlib.sha256(raw).hexdigest()


def described(candidate: Candidate, gate: GateResult | None, state: ReleaseState, note: str) -> Release:
    """The release that a candidate would be, without its content."""
    accepted = gate is not None and gate.verdict is Verdict.ACCEPT
    return Release(
        id="",
        scenario=candidate.scenario,
        number=0,
        kind=ReleaseKind.LEARNED if accepted else ReleaseKind.UNPROVEN,
        parent=candidate.parent,
        created_ns=time.time_ns(),
        reason=one_line(candidate.reason, LONGEST_REASON),
        recipe=candidate.recipe,
        job=candidate.job,
        config=candidate.config,
        records=candidate.records,
        reports=candidate.reports,
        instructions=candidate.instructions,
        gate=gate,
        environment=candidate.environment,
        state=state,
        note=note,
    )


def acts(before: Release | None, after: Release) -> str | None:
    """That ``after`` changes what can act by itself, and names it; None: it changes only what is read."""
    changed = harness.executable_changes(before.files if before else {}, after.files)
    if not changed:
        return None
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    return f"it changes what can act by itself: {', '.join(changed[:_NAMED])}{more}"
