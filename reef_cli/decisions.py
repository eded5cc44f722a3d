"""What became of a release or candidate, in words: the same in `reef releases list` and in the dashboard."""

from collections.abc import Mapping
from typing import Any

from daemon.core.releases import PERSON


def state(release: Mapping[str, Any]) -> str:
    """released, pending, rejected; or inconclusive: the gate could not tell, and nobody has said yes."""
    gate = release["gate"]
    unsure = release["state"] == "rejected" and gate is not None and gate["verdict"] == "inconclusive"
    return "inconclusive" if unsure else str(release["state"])


def serves(release: Mapping[str, Any]) -> bool:
    """Whether clients get it: the one that ``held`` names, where they are held; else the head."""
    return bool(release["id"] == release["held"] if release["held"] else release["head"])


def verdict(release: Mapping[str, Any]) -> str:
    """The gate's, with the pairs that the candidate won and lost: ``accept 9:1``; ``-`` where it was not judged."""
    gate = release["gate"]
    return f"{gate['verdict']} {gate['wins']}:{gate['losses']}" if gate else "-"


def short(release: Mapping[str, Any]) -> str:
    """``r5`` of ``r5-0badcafe``; a candidate has no number yet."""
    return str(release["id"].partition("-")[0]) if release["number"] else "(new)"


def by(release: Mapping[str, Any]) -> str:
    """Who made it."""
    return "a person's own" if release["recipe"] == PERSON else f"recipe {release['recipe']}, job {release['job']}"
