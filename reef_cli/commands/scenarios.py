"""`reef scenarios list · add · show · set · remove`: the workloads that records and releases belong to."""

from typing import Annotated, Any, Literal

from daemon.core.client import segment
from daemon.core.errors import ExitCode
from daemon.core.paths import home
from reef_cli import diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help

Name = Annotated[str, Help("A scenario's name.")]
Policy = Annotated[
    Literal["auto", "review", "manual", "configured"] | None,
    Help("Of accepted candidates: auto (released), review (they wait), manual (kept, nobody is asked), configured."),
]
Training = Annotated[
    Literal["hybrid", "manual"] | None,
    Help("What starts its recipe: hybrid (news and instructions), manual (instructions alone)."),
]


def list_scenarios(*, as_json: AsJson = False) -> None:
    page = ensure_daemon(home()).get("/reef/scenarios")
    if as_json:
        output.json({"items": page["items"], "next": page["next"]})
        return
    columns = ("name", "release_id", "policy", "training_mode")
    output.table(
        ("scenario", "release", "policy", "training"), [[row[name] for name in columns] for row in page["items"]]
    )


def add(name: Name, *, policy: Policy = None, training: Training = None, as_json: AsJson = False) -> None:
    """One comes into being by itself on first use; this makes it beforehand, with what is different for it."""
    told = ensure_daemon(home()).post("/reef/scenarios", {"name": name, **_changes(policy, training)})
    output.told(told, output.visible(_said(told)), as_json)


def set_scenario(name: Name, *, policy: Policy = None, training: Training = None, as_json: AsJson = False) -> None:
    """Holds until it is set again, over restarts, whatever the configuration file says."""
    told = ensure_daemon(home()).post(f"/reef/scenarios/{segment(name)}/update", _changes(policy, training))
    output.told(told, output.visible(_said(told)), as_json)


def show(name: Annotated[str, Help("A scenario's name.")] = "default", *, as_json: AsJson = False) -> None:
    """What it accepts, which recipe learns from it, and its newest releases."""
    client = ensure_daemon(home())
    told = client.get(f"/reef/scenarios/{segment(name)}/contract")
    releases = client.get("/reef/releases", scenario=name, limit=_NEWEST)["items"]
    if as_json:
        output.json({**told, "releases": releases})
        return
    facts = {
        "scenario": told["scenario"],
        "release": told["release_id"],
        "policy": told["policy"],
        "training": told["training_mode"],
        "recipe": told["recipe"] or "none is configured; instructions become rules (playbook)",
        "learns from": ", ".join(told["signals"]) or None,
        "needs": ", ".join(told["required_request_types"]),
        "scores": "{} to {}".format(*told["scores"]) if told["scores"] else None,
        "tasks": str(told["tasks"]),
        "problem": told["status"]["problem"],
    }
    for label, fact in facts.items():
        if fact is not None:
            output.line(f"{label:<13}{output.visible(fact, keep='')}")
    for release in releases:
        output.line(output.visible(f"{'':<13}{release['id']}  {output.one_line(release['reason'], 50)}", keep=""))


_NEWEST = 3


def remove(
    name: Name, *, yes: Annotated[bool, Help("Do not ask.", "--yes", "-y")] = False, as_json: AsJson = False
) -> int:
    """Its releases stay in Git, under another name, and its records until they are purged."""
    client = ensure_daemon(home())
    client.get(f"/reef/scenarios/{segment(name)}/contract")
    if not diagnostics.confirmed(f"Remove the scenario {name}?", yes=yes):
        diagnostics.say("nothing was changed")
        return ExitCode.FAILED
    told = client.delete(f"/reef/scenarios/{segment(name)}")
    if as_json:
        output.json(told)
        return ExitCode.OK
    output.line(output.visible(f"removed  {told['scenario']}"))
    if told["archived"]:
        output.line(output.visible(f"its releases stay: git --git-dir {home().releases} log {told['archived']}/head"))
    output.line(output.visible(f"its records stay: reef traces list scenario:{told['scenario']}"))
    return ExitCode.OK


def _changes(policy: str | None, training: str | None) -> dict[str, object]:
    changes: dict[str, object] = {}
    if policy is not None:
        changes["policy"] = None if policy == "configured" else policy
    if training is not None:
        changes["training_mode"] = training
    return changes


def _said(told: dict[str, Any]) -> str:
    return f"{told['scenario']}  {told['release_id']}  policy {told['policy']}, training {told['training_mode']}"
