"""Releases in a home's real store, published as a job's outcome is, and what a wrapper gets of them."""

import hashlib
import json
from collections.abc import Mapping

from adapters import delivery
from adapters.delivery import Delivery
from daemon.core import sshsig
from daemon.core.paths import Home
from daemon.core.releases import BASE_RELEASE, PERSON, Candidate, GateResult, Release, ReleaseState, Verdict
from daemon.server import install
from daemon.store.releases import Releases

PENDING = ReleaseState.PENDING
PLAYBOOK = "# Playbook\n\n- [r-00001] helpful=2 harmful=0 :: Use uv, not pip.\n"
SKILL = "---\nname: greet\ndescription: How to greet.\n---\nSay hello twice.\n"
PROMPT = "---\ndescription: A summary.\n---\nSummarise $1\n"
HARNESS = {
    "playbook.md": PLAYBOOK,
    "rules.md": "Answer briefly.\n",
    "skills/greet/SKILL.md": SKILL,
    "prompts/sum.md": PROMPT,
}


def accepted(wins: int = 9, losses: int = 0) -> GateResult:
    return GateResult(
        verdict=Verdict.ACCEPT, reason=f"{wins} better, {losses} worse", alpha=0.1, wins=wins, losses=losses, ties=3,
        e_value=30.0, p_value=0.002, planned=40, incumbent_passed=1, candidate_passed=10,
    )  # fmt: skip


def propose(
    home: Home, job: str, harness: Mapping[str, str | None], *, scenario: str = "default", reason: str = "a rule"
) -> Release:
    """An accepted candidate that waits, made from the head."""
    releases = Releases.open(home)
    head = releases.head(scenario)
    parent = head.id if head else BASE_RELEASE
    made = Candidate(scenario=scenario, parent=parent, reason=reason, recipe="playbook", job=job, harness=harness)
    return releases.propose(made, accepted())


def publish(
    home: Home,
    job: str = "job_1",
    harness: Mapping[str, str | None] = HARNESS,
    *,
    scenario: str = "default",
    reason: str = "rule added: Use uv, not pip.",
) -> Release:
    """The next release of a scenario's chain."""
    waits = propose(home, job, harness, scenario=scenario, reason=reason)
    return Releases.open(home).publish(waits, waits.parent)


def approved(home: Home, harness: Mapping[str, str | None], *, scenario: str = "default") -> Release:
    """A person's own, with what can act by itself in it, after their yes."""
    releases = Releases.open(home)
    made = Candidate(
        scenario=scenario, parent=BASE_RELEASE, reason="mine", recipe=PERSON, job="person-1", harness=harness
    )
    return releases.publish(releases.propose(made, None), BASE_RELEASE, by_person=True)


def delivered(home: Home, release_id: str | None = None, scenario: str = "default") -> Delivery:
    """What ``GET /reef/harness`` answers, parsed, not checked."""
    told = install.delivered(Releases.open(home), scenario, release_id)
    return delivery.parse({**told, "scenario": scenario})


def signed(home: Home, told: Delivery, files: dict[str, str], *, listed: dict[str, str] | None = None) -> Delivery:
    """The release with other files, signed by the right key. ``listed``: what its manifest says it has."""
    named = {f"harness/{path}": text for path, text in files.items()} if listed is None else listed
    digests = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in named.items()}
    manifest = json.dumps(json.loads(told.manifest or "") | {"files": digests})
    signature = sshsig.signer(home).sign(manifest.encode(), sshsig.MANIFEST_NAMESPACE)
    return told._replace(manifest=manifest, signature=signature, files=files)
