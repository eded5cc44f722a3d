"""`reef tasks add · list · run · remove`: what candidates are judged by, each a prompt and a check."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from daemon.core.client import Client, segment
from daemon.core.errors import UsageError
from daemon.core.paths import home
from reef_cli import diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import beginnings, resolved
from reef_cli.parameters import AsJson, Help
from reef_cli.questions import question

Set = Literal["gate", "regression", "search"]
Scenario = Annotated[str | None, Help("Whose tasks; else the default scenario's.")]

_CHECKS = ("form", "expression", "command")
_PAGE = 500


def add(  # noqa: PLR0913 - the options of one task
    prompt: Annotated[str | None, Help("What the agent is asked.")] = None,
    *,
    receipt: Annotated[
        str | None, Help("Ask what was asked before this recorded answer, or a beginning of its receipt.", "--from")
    ] = None,
    form: Annotated[str | None, Help("The answer has this form: one_sentence, json, max_words:20, …")] = None,
    expression: Annotated[str | None, Help("This regular expression is found in it.")] = None,
    command: Annotated[str | None, Help("This command, given it on stdin and in answer.txt, exits with 0.")] = None,
    set: Annotated[Set | None, Help("gate decides (the default), regression must not be lost, search guides.")] = None,
    critical: Annotated[bool, Help("A regression task that no candidate may lose.")] = False,
    max_tokens: Annotated[int | None, Help("Longest answer.")] = None,
    file: Annotated[str | None, Help("Many at once, all or none: a YAML list, or JSON lines.")] = None,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """A candidate is better when tasks pass with it that do not pass without it: add at least five, of what you want to
    become true. Recipes never learn from their prompts.

    In a file each entry is a prompt, or a mapping: prompt, one of form, expression, command, and set, critical,
    max_tokens where they differ from the options given here.
    """
    given = {"form": form, "expression": expression, "command": command, "set": set, "max_tokens": max_tokens}
    shared = {name: value for name, value in given.items() if value is not None} | (
        {"critical": True} if critical else {}
    )
    if [prompt, file, receipt].count(None) != 2:
        raise UsageError("give a prompt, --from or --file, one of them", hint="reef tasks add --help")
    client = ensure_daemon(home())
    if receipt is not None:
        prompt, recorded = question(client, resolved(client, receipt, "receipt"))
        scenario = scenario or recorded
    if prompt is not None:
        kept = [client.post("/reef/tasks", _task(prompt, shared), scope=scenario)]
        if as_json:
            output.json(kept[0])
            return
    else:
        tasks = [_task(entry, shared) for entry in _entries(Path(str(file)).expanduser())]
        kept = client.post("/reef/tasks", {"tasks": tasks}, scope=scenario)["items"]
        if as_json:
            output.json({"items": kept})
            return
    _told(kept)


def list_tasks(
    *,
    set: Annotated[Set | None, Help("Only this set's.")] = None,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    items = _all(ensure_daemon(home()), scenario, set)
    if as_json:
        output.json({"items": items})
        return
    rows = [
        (
            name,
            item["set"] + (" critical" if item["critical"] else ""),
            _check(item),
            output.one_line(item["prompt"], 48),
        )
        for name, item in zip(beginnings([item["id"] for item in items]), items, strict=True)
    ]
    output.table(("id", "set", "check", "prompt"), rows)
    if not items:
        diagnostics.say('no tasks yet: reef tasks add "What is rain?" --form one_sentence')


def run(*, scenario: Scenario = None, as_json: AsJson = False) -> None:
    """Every task that judges, answered by what serves now: its harness and its weights. A measurement, off the record;
    nothing is compared or released. Failed ones come with their answer. With --json: one line a task.
    """
    passed: dict[str, list[bool]] = {}
    for item in ensure_daemon(home()).lines("/reef/tasks/run", {} if scenario is None else {"scenario": scenario}):
        passed.setdefault(item["set"], []).append(item["passed"])
        if as_json:
            output.jsonl(item)
            continue
        output.line(f"{'passed' if item['passed'] else 'FAILED'}  {output.one_line(item['prompt'])}")
        if not item["passed"]:
            said = item["error"]["message"] if "error" in item else item["answer"]
            output.line(f"        {output.one_line(said)}")
    if not as_json:
        output.line(", ".join(f"{name}: {sum(all)} of {len(all)} passed" for name, all in sorted(passed.items())))


def remove(
    task: Annotated[str, Help("A task's id or its beginning, as `reef tasks list` prints it.")],
    *,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """What was judged by it keeps its evidence."""
    client = ensure_daemon(home())
    removed = client.delete(f"/reef/tasks/{segment(resolved(client, task, 'task', scenario=scenario))}")
    output.told(removed, f"removed  {removed['id']}  {output.one_line(removed['prompt'])}", as_json)


def _task(entry: object, shared: dict[str, Any]) -> dict[str, Any]:
    """An entry as the daemon takes it; what it says itself goes before what is shared."""
    own = {"prompt": entry} if isinstance(entry, str) else entry
    if not isinstance(own, dict):
        raise UsageError(f"an entry is a prompt or a mapping, got {entry!r:.60}")
    has_check = any(name in own for name in (*_CHECKS, "check"))
    merged = {name: value for name, value in shared.items() if not (has_check and name in _CHECKS)} | own
    check = {name: merged.pop(name) for name in _CHECKS if name in merged}
    return merged | ({"check": check} if check and "check" not in own else {})


def _entries(path: Path) -> list[Any]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageError(f"cannot read {path}: {said}") from error
    if path.suffix in (".jsonl", ".ndjson"):
        return [_line(path, number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    import yaml

    try:
        entries = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(entries, list):
        raise UsageError(f"{path} is not a list of tasks", hint='- {prompt: "What is rain?", form: one_sentence}')
    return entries


def _line(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise UsageError(f"{path}, line {number} is not JSON: {error}") from error


def _told(kept: list[dict[str, Any]]) -> None:
    for task in kept:
        word = "added" if task["created"] else "merged"
        output.line(f"{word:<7} {task['id']}  {task['set']}  {_check(task)}  {output.one_line(task['prompt'], 48)}")
    merged = sum(not task["created"] for task in kept)
    if merged:
        diagnostics.say(f"{output.count(merged, 'task')} of {len(kept)} had been there already")


def _check(task: dict[str, Any]) -> str:
    kind, value = next((kind, task["check"][kind]) for kind in _CHECKS if task["check"][kind] is not None)
    return output.one_line(value if kind == "form" else f"{kind} {value}", 40)


def _all(client: Client, scenario: str | None, set: str | None) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    before = None
    while True:
        page = client.get("/reef/tasks", scenario=scenario, set=set, limit=_PAGE, before=before)
        items += page["items"]
        before = page["next"]
        if before is None:
            return items
