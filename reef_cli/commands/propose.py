"""`reef harness propose · seed · route`: files of yours, a tree of ours, or another model, as a release that waits."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from daemon.core import harness
from daemon.core.client import segment
from daemon.core.errors import UsageError
from daemon.core.paths import home, open_plain
from reef_cli import diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.names import only
from reef_cli.parameters import AsJson, Help

Scenario = Annotated[str | None, Help("Whose harness; `default` when it is not given.")]
Yes = Annotated[bool, Help("Release it at once, unless it can act by itself or changes what is there.", "--yes", "-y")]

#: More than any file of a harness may have; the daemon says which is too large.
_LARGEST = 300_000


def propose(
    files: Annotated[list[str], Help("A folder laid out as a harness, or files named as they are in one.")],
    *,
    reason: Annotated[str, Help("Why; it stays with the release.")] = "",
    whole: Annotated[bool, Help("What is not among them goes.", "--whole")] = False,
    yes: Yes = False,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """Text, settings, MCP servers and extensions; nothing runs before you approve it. A file's place in the harness is
    the end of its path: ~/notes/skills/greet/SKILL.md is skills/greet/SKILL.md.
    """
    found: dict[str, str] = {}
    for place, path in (pair for name in files for pair in _places(Path(name).expanduser())):
        if place in found:
            raise UsageError(f"{path} is {place}, and so is another file", hint="propose one of them")
        found[place] = _text(path)
    if not found:
        raise UsageError(f"no harness file is in {', '.join(files)}", hint=f"it holds {harness.PLACES}")
    _send(found, {"reason": reason, "whole": whole}, yes=yes, scenario=scenario, as_json=as_json)


def route(
    routes: Annotated[list[str], Help("asked=model, or asked=provider/model: all the routes that there will be.")],
    *,
    reason: Annotated[str, Help("Why; it stays with the release.")] = "",
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """An agent that asks for the one is answered by the other, in this scenario, once you approve it. The release
    before has it as it was: `reef releases rollback`.
    """
    said: dict[str, object] = {"reason": reason, "routing": dict(_route(words) for words in routes)}
    _send({}, said, yes=False, scenario=scenario, as_json=as_json)


def seed(
    name: Annotated[str | None, Help("Which; without one, they are listed.")] = None,
    *,
    yes: Yes = False,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """Rules, skills and prompts to start from. Yours stay; a file of the same name shows in the proposal's diff."""
    from adapters import seeds

    if name is not None:
        _send(seeds.files(name), {"reason": f"the seed {name}"}, yes=yes, scenario=scenario, as_json=as_json)
        return
    rows = [{"name": one, "files": sorted(seeds.files(one)), "summary": said} for one, said in seeds.names().items()]
    if as_json:
        output.json({"items": rows})
        return
    output.table(("seed", "files", "for"), [(row["name"], len(row["files"]), row["summary"]) for row in rows])
    diagnostics.say("to take one: reef harness seed NAME")


def _send(files: dict[str, str], said: dict[str, object], *, yes: bool, scenario: str | None, as_json: bool) -> None:
    body = {"files": files, **said}
    client = ensure_daemon(home())
    head = client.get("/reef/harness", scenario=scenario)["files"]
    told = client.post("/reef/harness/proposals", body, scope=scenario)
    over = sorted(path for path, text in files.items() if head.get(path, text) != text)
    if yes and told["state"] == "pending" and not (told["acts"] or over or body.get("whole")):
        told |= client.post(f"/reef/releases/{segment(told['id'])}/approve", {}, scope=scenario)
    if as_json:
        output.json(told)
        return
    word = "released" if told["state"] == "released" else "proposed"
    output.line(output.visible(f"{word}  {told['id']}  {output.one_line(told['reason'])}", keep=""))
    if told["state"] == "released":
        return
    if told["acts"]:
        output.line(output.visible(told["acts"], keep=""))
    if over:
        output.line(output.visible(f"it changes what you have: {', '.join(over)}", keep=""))
    if told["state"] == "rejected":
        output.line(f"it was turned down before: {output.visible(told['note'], keep='')}")
    output.line(f"see it: reef releases diff {told['id']}{only(scenario)}")
    output.line(f"then: reef releases approve {told['id']}{only(scenario)}")


def _places(path: Path) -> Iterator[tuple[str, Path]]:
    """(place in the harness, file). Raises UsageError for a file that has none."""
    if not path.exists():
        raise UsageError(f"cannot read {path}: there is no such file", hint="reef harness propose --help")
    if not path.is_dir():
        parts = path.absolute().parts
        place = next((one for n in range(len(parts)) if harness.entry(one := "/".join(parts[n:]))), None)
        if place is None:
            raise UsageError(f"{path} has no place in a harness", hint=f"it holds {harness.PLACES}")
        yield place, path
        return
    for folder, names, found in os.walk(path):
        names[:] = sorted(name for name in names if name != ".git")
        for name in sorted(found):
            place = (Path(folder) / name).relative_to(path).as_posix()
            if harness.entry(place) is None and (name.startswith(".") or name.endswith("~")):
                continue
            if harness.entry(place) is None:
                raise UsageError(f"{Path(folder) / name} has no place in a harness", hint=f"it holds {harness.PLACES}")
            yield place, Path(folder) / name


def _route(words: str) -> tuple[str, str]:
    asked, equals, model = words.partition("=")
    if not (asked and equals and model):
        raise UsageError(f"{words!r} is no route", hint="for example gpt-5=openrouter/x-ai/grok")
    return asked, model


def _text(path: Path) -> str:
    try:
        with open_plain(path) as file:
            return file.read(_LARGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"cannot read {path}: {said}") from error
