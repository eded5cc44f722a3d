"""`reef harness …`: coding agents that Reef wraps: install one, see which release it runs, take it away again."""

from typing import Annotated, Any, Literal

from adapters import active, apply, base, receipt, session
from adapters.plan import Choice, Upgrade, find_node
from adapters.session import Place
from daemon.core.errors import Conflict, NotFound, ReefError
from daemon.core.paths import home
from reef_cli import diagnostics, output, wrapped
from reef_cli.parameters import AsJson, Help

Adapter = Literal["pi"]
_Which = Annotated[Adapter, Help("Which agent.")]


def install(
    *,
    adapter: _Which = "pi",
    scenario: Annotated[str, Help("What its records and releases belong to.")] = "default",
    upgrade: Annotated[
        Upgrade, Help("When a newer release is taken: at the next start, after a yes, by `update`.")
    ] = "auto",
    link: Annotated[bool, Help("Also put the command into ~/.local/bin.", "--link")] = False,
    as_json: AsJson = False,
) -> None:
    """Downloads the agent at a pinned version from npm into Reef's home and writes the command that runs it. Nothing
    else is changed: not your own agent, not your shell's files. Run it again to change a choice or to upgrade.
    """
    home().prepare()
    plan = base.adapter(adapter).plan(home(), node(adapter), Choice(scenario, upgrade, link))
    apply.apply(plan, diagnostics.say)
    command = str(plan.home / plan.wrapper)
    if as_json:
        output.json({"adapter": adapter, "version": plan.version, "command": command, "link": plan.link})
    else:
        output.line(output.visible(command))


def node(adapter: str) -> Any:
    """The Node.js on PATH. Raises NotFound."""
    found = find_node()
    if found is None:
        raise NotFound(f"{adapter} needs Node.js with npm on PATH", hint="https://nodejs.org/en/download")
    return found


def list_adapters(*, as_json: AsJson = False) -> None:
    rows = [_row(name) for name in base.ADAPTERS]
    if as_json:
        output.json({"items": rows})
        return
    columns = ("adapter", "version", "scenario", "upgrade", "release", "running")
    output.table(columns, [[row[name] for name in columns] for row in rows])
    for row in rows:
        if row["command"] is None:
            diagnostics.say(f"not installed yet: reef harness install --adapter {row['adapter']}")
        else:
            diagnostics.say(f"to run it: {row['command']}")


def _row(name: str) -> dict[str, object]:
    place = Place(home().agents / name)
    adapter = base.adapter(name)
    row: dict[str, object] = {"adapter": name, "version": adapter.version, "summary": adapter.summary}
    if receipt.read(home().root, name) is None:
        return row | dict.fromkeys(("scenario", "upgrade", "release", "running", "command"))
    chosen = wrapped.installation(place, name)
    now = active.load(place.active, chosen["scenario"])
    with session.turn(place):
        running = len(session.living(place))
    return row | {
        "version": chosen["version"],
        "scenario": chosen["scenario"],
        "upgrade": chosen["upgrade"],
        "release": now.release_id if now else None,
        "running": running,
        "command": str(home().commands / f"reef-{name}"),
    }


def update(*, adapter: _Which = "pi", as_json: AsJson = False) -> None:
    """The next run takes the newest release, whatever was chosen at installation. What runs goes on as it is."""
    place = Place(home().agents / adapter)
    scenario = wrapped.installation(place, adapter)["scenario"]
    told, serves = wrapped.deliver(home(), adapter, scenario)
    with session.turn(place):
        last = active.load(place.active, scenario)
        active.forward(last, told, place.active)
        active.save(place.active, scenario, active.Active(told.release_id, told.number, serves))
    changed = last is None or last.release_id != told.release_id
    if as_json:
        output.json({"adapter": adapter, "scenario": scenario, "changed": changed, **told.facts()})
    else:
        output.line(output.visible(f"{wrapped.said(told)}{'' if changed else ' (in use already)'}"))


def uninstall(
    *,
    adapter: _Which = "pi",
    purge: Annotated[bool, Help("Also your conversations, logins and settings inside it.", "--purge")] = False,
    as_json: AsJson = False,
) -> None:
    """Removes what the receipt lists. A file that you changed stays and is named, and so does what is yours."""
    place = Place(home().agents / adapter)
    if receipt.read(home().root, adapter) is None:
        raise NotFound(f"{adapter} is not installed", hint="reef harness list")
    with session.turn(place):
        running = session.sweep(place)
    if running:
        runs = "1 run" if len(running) == 1 else f"{len(running)} runs"
        have = "has" if len(running) == 1 else "have"
        raise Conflict(f"{runs} of reef-{adapter} {have} not ended yet", hint=f"leave {adapter} first, then try again")
    kept = receipt.uninstall(home().root, adapter)
    for passing in place.passing():
        if passing.is_dir():
            receipt.erase(passing)
        else:
            passing.unlink(missing_ok=True)
    if purge:
        receipt.erase(place.user)
    kept += [str(place.user)] if place.user.is_dir() else []
    if not kept:
        _remove_empty(place)
    if as_json:
        output.json({"adapter": adapter, "kept": kept})
        return
    output.line(f"{adapter} is uninstalled")
    for path in kept:
        output.line(f"kept, it is yours: {output.visible(path)}")


def _remove_empty(place: Place) -> None:
    try:
        place.root.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ReefError(f"{place.root} holds files that are not Reef's; they stay", hint=f"ls {place.root}") from error
