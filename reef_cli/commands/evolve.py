"""`reef evolve · edit`: say in words what should change, or show how an answer should have been."""

import sys
from contextlib import nullcontext
from typing import Annotated, Any

from daemon.core.client import Client, segment
from daemon.core.errors import NotFound, ReefError, UsageError
from daemon.core.paths import home
from reef_cli import diagnostics, output
from reef_cli.commands.recipes import Scenario, Wait, told
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import resolved
from reef_cli.parameters import AsJson, Help, Record


def evolve(
    text: Annotated[str, Help("What should be different, in your own words.")],
    *,
    recipe: Annotated[str | None, Help("Who should take care of it; else the configured recipe, or playbook.")] = None,
    scenario: Scenario = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> int:
    """The instruction is kept before this returns, and a job is started for it at once."""
    client = ensure_daemon(home())
    is_new = scenario is not None and not _known(client, scenario)
    body = {"text": text, **({"recipe": recipe} if recipe else {})}
    answer = client.post("/reef/train", body, scope=scenario)
    if is_new:
        diagnostics.say(f"new scenario: {scenario!r} had no session, job, task or release")
    if answer["job"] is not None:
        return told(answer["job"], wait=wait, as_json=as_json, more={"instruction": answer["instruction"]})
    if as_json:
        output.json(answer)
        return 0
    output.line(f"kept  {answer['instruction']}")
    diagnostics.say("no recipe takes it now: reef recipes list")
    return 0


def _known(client: Client, scenario: str) -> bool:
    lists = ("/reef/sessions", "/reef/jobs", "/reef/tasks", "/reef/releases")
    return any(client.get(path, limit=1, scenario=scenario)["items"] for path in lists)


def edit(
    record: Record = None,
    *,
    text: Annotated[str | None, Help("The answer as it should have been; else $EDITOR opens with it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Recipes that change weights learn most from it. An answer that you leave as it is sends nothing."""
    client = ensure_daemon(home())
    row, answer = _answer(client, record)
    edited = (_in_editor(answer) if text is None else text).rstrip()
    if edited.strip() == answer.strip() or not edited.strip():
        diagnostics.say("nothing changed, nothing sent")
        if as_json:
            output.json({"created": False, "references": [row["receipt"]]})
        return
    body = {"metadata": {"edited": edited}, "references": [row["receipt"]]}
    report = client.post("/reef/report", body, scope=str(row["scenario"]))
    output.told(report, f"edited  {row['receipt']}  {output.one_line(edited)}", as_json)


def _answer(client: Client, record: str | None) -> tuple[dict[str, Any], str]:
    """A record with the text of its answer."""
    receipt = client.get("/reef/last")["receipt"] if record is None else resolved(client, record, "receipt")
    row: dict[str, Any] = client.get(f"/reef/records/{segment(receipt)}")
    for entry in client.get(f"/reef/traces/{segment(receipt)}", before=row["seq"] + 1, limit=1)["records"]:
        if entry["record"]["receipt"] == receipt and entry["answer"] is not None:
            parts = entry["answer"]["parts"]
            return row, "".join(part["text"] for part in parts if part["type"] == "text")
    raise NotFound(f"record {receipt} has no answer to edit", hint="reef traces show")


def _in_editor(text: str) -> str:
    """What the person makes of it."""
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to edit in", hint='give the answer: reef edit --text "…"')
    from reef_cli.tui import outside

    with outside.written(text.split("\n"), "answer.md") as file:
        try:
            outside.read(outside.editor(), file, nullcontext())
        except ReefError as error:
            raise type(error)(f"{error.message}: nothing was sent", hint=error.hint) from error
        return file.read_text(encoding="utf-8")
