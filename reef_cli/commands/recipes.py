"""`reef recipes list · run`: ways to learn from what is recorded."""

import json
import textwrap
from typing import Annotated, Any

from daemon.core.errors import UsageError
from daemon.core.paths import home
from reef_cli import diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help
from reef_cli.waiting import ended, followed, refused

Wait = Annotated[bool, Help("Wait until it is over; exit code 7 when the gate did not accept.", "--wait")]
Scenario = Annotated[str | None, Help("Whose experience; else the default scenario's.")]


def list_recipes(*, as_json: AsJson = False) -> None:
    """Your own class in a module beside the configuration file is one, too: reef recipes run my_module:MyRecipe."""
    listed = ensure_daemon(home()).get("/reef/recipes")
    if as_json:
        output.json(listed)
        return
    known = [recipe for recipe in listed["items"] if "error" not in recipe]
    for recipe in known:
        said = f"changes {recipe['changes']}"
        if recipe["signals"]:
            said += f"; learns from {', '.join(recipe['signals'])}"
        output.line(f"{output.bold(output.visible(recipe['name'], keep=''))}  {output.visible(said, keep='')}")
        for text in (recipe["summary"], _settings(recipe["config"])):
            for line in textwrap.wrap(output.visible(text, keep=""), output.WIDE - 2, break_on_hyphens=False):
                output.line(f"  {line}")
    for recipe in listed["items"]:
        if "error" in recipe:
            diagnostics.say(f"{recipe['name']}: {recipe['error']['message']}")


def run(
    name: Annotated[str, Help("A recipe's name, or module:Class.")],
    *,
    settings: Annotated[list[str] | None, Help("A setting of the recipe, key=value; may be repeated.", "--set")] = None,
    scenario: Scenario = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> int:
    """It runs in the background and gives way to everything else."""
    client = ensure_daemon(home())
    body: dict[str, object] = {"recipe": name, "config": dict(_setting(text) for text in settings or ())}
    job = client.post("/reef/jobs", body | ({"scenario": scenario} if scenario else {}))
    return told(job, wait=wait, as_json=as_json)


def told(job: dict[str, Any], *, wait: bool, as_json: bool, more: dict[str, Any] | None = None) -> int:
    """Say that a job runs, or with ``wait`` what became of it; ``more`` goes into the JSON."""
    if wait:
        if not as_json:
            diagnostics.say(f"{job['id']} {job['recipe']}")
        job = followed(ensure_daemon(home()), job)
    if as_json:
        output.json({**(more or {}), "job": job} if more is not None else job)
        return refused(job) if wait else 0
    if wait:
        return ended(job)
    output.line(f"{job['state']}  {job['id']}  {output.visible(str(job['recipe']), keep='')}")
    diagnostics.say(f"to watch it: reef jobs show -f {job['id']}")
    return 0


def _setting(text: str) -> tuple[str, object]:
    """``rank=8`` → ("rank", 8): the value is JSON where it can be, else text."""
    key, found, value = text.partition("=")
    if not found or not key:
        raise UsageError(f"--set {text!r} is not key=value", hint="for example --set batch_size=4")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _settings(config: dict[str, Any]) -> str:
    return " ".join(f"{name}={'-' if value is None else value}" for name, value in config.items())
