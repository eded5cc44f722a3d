"""`reef releases show · diff · card · blame`: one release, what it changed, why, and who put each line there.

Nothing here moves anything.
"""

from typing import Annotated, Any, Final

from daemon.core.client import segment
from daemon.core.paths import home
from reef_cli import decisions, diagnostics, output
from reef_cli.commands.releases import Scenario, head
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import only
from reef_cli.parameters import AsJson, Help

_LINES: Final = 12
_WIDE: Final = 200


def show(
    release: Annotated[str | None, Help("A release (r5, r5-…) or a candidate; by default the head.")] = None,
    *,
    full: Annotated[bool, Help("With the whole texts of its harness.")] = False,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    client = ensure_daemon(home())
    told = client.get(f"/reef/releases/{segment(release or head(client, scenario))}", scenario=scenario)
    if as_json:
        output.json(told)
        return
    output.line(output.visible(told["card"]))
    for name in ("note", "acts", "commit"):
        if told[name] and not (name == "acts" and told[name] in told["note"]):
            output.line(f"{name:<10}{output.visible(told[name], keep='')}")
    if told["pinned"]:
        output.line(f"{'pinned':<10}clients are held here: reef releases unpin{only(scenario)}")
    _texts(told, full)
    output.line()
    if told["state"] != "released":  # it is in no branch that a clone would bring
        force = " --force" if told["gate"] and told["gate"]["verdict"] == "reject" else ""
        doubted = " all the same" if told["gate"] else ""
        output.line(f"to release it{doubted}: reef releases approve {told['id']}{force}{only(scenario)}")
        return
    output.line("a copy that needs nothing of Reef:")
    for command in told["clone"]:
        output.line(f"  {output.visible(command)}")


def _texts(told: dict[str, Any], full: bool) -> None:
    for asked, model in told["routing"].items():
        output.line(output.visible(f"{'routing':<10}{asked}: {model} answers", keep=""))
    for path, text in told["files_text"].items():
        output.line()
        output.line(output.bold(output.visible(path)))
        lines = text.rstrip().split("\n")
        for line in lines if full else lines[:_LINES]:
            output.line(f"  {output.visible(line)}")
        if not full and len(lines) > _LINES:
            output.line(f"  … {len(lines) - _LINES} more lines: --full")


def diff(
    release: Annotated[str | None, Help("A release or a candidate; by default the head.")] = None,
    *,
    against: Annotated[str | None, Help("Another release, or `base`; by default what it was made from.")] = None,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """Weights show as the hashes of their files."""
    client = ensure_daemon(home())
    path = f"/reef/releases/{segment(release or head(client, scenario))}/diff"
    told = client.get(path, against=against, scenario=scenario)
    if as_json:
        output.json(told)
    elif told["diff"]:
        output.line(output.visible(told["diff"].rstrip("\n")))
    else:
        diagnostics.say("no difference")


def card(
    release: Annotated[str | None, Help("A release or a candidate; by default the head.")] = None,
    *,
    html: Annotated[bool, Help("As a web page that runs nothing, with every answer that the gate saw.")] = False,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """What it is, how it was judged, what it came from."""
    client = ensure_daemon(home())
    path = f"/reef/releases/{segment(release or head(client, scenario))}/card"
    if html:
        for row in client.rows(path, format="html", scenario=scenario):
            output.raw(row.decode())
        return
    told = client.get(path, scenario=scenario)
    if as_json:
        output.json(told)
        return
    output.line(output.visible(told["card"]))
    for said in told["said"]:
        output.line(f"said      {_said(said)}")


def blame(
    path: Annotated[str, Help("A file of its harness, as `reef releases show` names it: rules.md.")],
    release: Annotated[str | None, Help("A release or a candidate; by default the head.")] = None,
    *,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """Each line with the release that put it there; below, what people said that those releases came from."""
    client = ensure_daemon(home())
    name = release or head(client, scenario)
    told = client.get(f"/reef/releases/{segment(name)}/blame", path=path, scenario=scenario)
    if as_json:
        output.json(told)
        return
    put = told["releases"]
    for line in told["lines"]:
        output.line(f"{decisions.short(put[line['release']]):<8}{output.visible(line['text'])}")
    for one in put.values():
        output.line()
        output.line(
            f"{output.bold(one['id'])}  {output.clock(one['created_ns'])}  {output.visible(decisions.by(one), keep='')}"
        )
        output.line(f"  {output.one_line(one['reason'], _WIDE)}")
        for said in one["said"]:
            output.line(f"  {_said(said)}")


def _said(said: dict[str, Any]) -> str:
    score = "" if said["score"] is None else f" {said['score']:g}"
    return f"{said['kind']}{score} {output.visible(said['id'], keep='')}: {output.one_line(said['text'], _WIDE)}"
