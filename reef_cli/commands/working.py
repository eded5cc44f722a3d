"""`reef harness edit · status · keep · discard`: the harness as files that you edit, and what becomes of your edits."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

from daemon.core.errors import ExitCode, ReefError
from daemon.core.paths import home
from reef_cli import by_hand, diagnostics, names, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help

Scenario = Annotated[str | None, Help("Whose harness; `default` when it is not given.")]
Files = Annotated[list[str] | None, Help("Paths in the working copy, such as rules.md; without one: all.")]

_WIDTH = 10


def edit(
    *,
    open: Annotated[bool, Help("Open the folder in $EDITOR.", "--open")] = False,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> None:
    """Lays the files of the newest release into a folder and prints it. Save a file there, and your edit is proposed as
    a release: see it with `reef releases diff`, release it with `reef releases approve`. Newer releases come into the
    folder by themselves; what you edited stays.
    """
    body = {} if scenario is None else {"scenario": scenario}
    client = ensure_daemon(home())
    slip = names.unknown(client, scenario)
    told = client.post("/reef/harness/working", body)
    if as_json:
        output.json(told)
    else:
        output.line(output.visible(told["path"]))
        if slip:
            diagnostics.say(f"{slip}; this one begins with its first release")
        if told["base"] == "base" and not told["edits"]:
            diagnostics.say("nothing is in it yet: write rules.md there, or start from others': reef harness seed")
    if open:
        from reef_cli.tui import outside

        outside.read(outside.editor(), Path(told["path"]), nullcontext())


def status(*, scenario: Scenario = None, as_json: AsJson = False) -> int:
    """Your edits, the proposal they are in, what is wrong with a file, and what both you and a release changed. Named
    too is what you changed of the files that one agent reads, which no other run takes.

    Exit code 1 when something waits for you to put it right.
    """
    items = ensure_daemon(home()).get("/reef/harness/working", scenario=scenario)["items"]
    changed = by_hand.found(home())
    if as_json:
        output.json({"items": items, "edited": changed})
    else:
        if not items:
            diagnostics.say("no working copy yet: reef harness edit")
        for item in items:
            _show(item)
        by_hand.tell(changed)
    fine = not any(item["trouble"] or item["conflicts"] or _wrong(item) for item in items)
    return ExitCode.OK if fine else ExitCode.FAILED


def keep(files: Files = None, *, scenario: Scenario = None, as_json: AsJson = False) -> None:
    """Yours it is: the file goes into your next proposal as it lies there, over what the release changed in it."""
    _decide("keep", files, scenario, as_json)


def discard(
    files: Files = None,
    *,
    yes: Annotated[bool, Help("Do not ask.", "--yes", "-y")] = False,
    scenario: Scenario = None,
    as_json: AsJson = False,
) -> int:
    """What you changed in these files is gone; they are the release's again."""
    ensure_daemon(home()).get("/reef/harness/working", scenario=scenario or "default")  # is there something to ask?
    what = ", ".join(files) if files else "everything you changed"
    if not diagnostics.confirmed(f"Give up {what} ({scenario or 'default'})?", yes=yes):
        diagnostics.say("nothing was changed")
        return ExitCode.FAILED
    _decide("discard", files, scenario, as_json)
    return ExitCode.OK


def _decide(verb: str, files: list[str] | None, scenario: str | None, as_json: bool) -> None:
    client = ensure_daemon(home())
    (before,) = client.get("/reef/harness/working", scenario=scenario or "default")["items"]
    body: dict[str, object] = {"files": [_inside(file, Path(before["path"])) for file in files or ()]}
    told = client.post(f"/reef/harness/working/{verb}", body | ({"scenario": scenario} if scenario else {}))
    if as_json:
        output.json(told)
    else:
        _show(told)


def _inside(file: str, root: Path) -> str:
    """A path as the harness has it, where one was given as the file system has it. Raises ReefError."""
    path = Path(file)
    if not path.is_absolute():
        return file
    if not path.is_relative_to(root):
        raise ReefError(f"{file} is not in {root}", hint="reef harness status")
    return path.relative_to(root).as_posix()


def _wrong(item: dict[str, Any]) -> bool:
    return any(problem["blocks"] for problem in item["problems"])


def _show(item: dict[str, Any]) -> None:
    only = names.only(item["scenario"])

    def tell(word: str, text: str) -> None:
        output.line(f"{word:<{_WIDTH}}{output.visible(text, keep='')}")

    output.line(output.bold(output.visible(f"{item['scenario']}  {item['path']}", keep="")))
    if item["trouble"]:
        tell("trouble", item["trouble"])
        return
    tell("made from", item["base"])
    for change in item["edits"]:
        tell(change["how"], change["path"])
    for problem in item["problems"]:
        tell("wrong" if problem["blocks"] else "passed", f"{problem['path']}: {problem['message']}")
    for path, release in item["conflicts"].items():
        tell("conflict", f"{path}: you changed it, and so did {release}; yours lies there")
        tell("", f"theirs: reef releases diff {release}{only}")
        tell("", f"then: reef harness keep {path}{only}, or: reef harness discard {path}{only}")
    held = _wrong(item) or item["conflicts"]
    if item["proposal"]:
        tell("proposed", f"{item['proposal']}, {item['proposal_state']}{', of an earlier state' if held else ''}")
    if held:
        tell("next", "nothing more is proposed until that is put right; no edit is lost")
    elif item["proposal_state"] == "pending":
        tell("next", f"reef releases diff {item['proposal']}{only}")
        tell("", f"then: reef releases approve {item['proposal']}{only}")
