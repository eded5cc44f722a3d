"""`reef harness …`: coding agents that Reef wraps: install one, see which release it runs, take it away again."""

from pathlib import Path
from typing import Annotated

from adapters import active, agent, apply, plan, receipt, rendering, session, shelf
from adapters.agent import Adapter, ModeName
from adapters.machine import find_node
from adapters.plan import Choice, InstallPlan, OnDaemonDown, Upgrade
from adapters.session import Place
from daemon.core.errors import Conflict, NotFound, ReefError, UsageError
from daemon.core.locks import locked
from daemon.core.paths import home, private_directory
from reef_cli import by_hand, diagnostics, output, wrapped
from reef_cli.parameters import AsJson, Help

_Which = Annotated[str, Help("Which agent; `reef harness list` names them.")]
_Installed = Annotated[str | None, Help("Which agent; by default the one that is installed.")]


def install(  # noqa: PLR0913 - a choice each
    *,
    adapter: _Which = "pi",
    mode: Annotated[
        ModeName | None, Help("isolated (default): a configuration of its own; overlay: yours, with Reef's on top.")
    ] = None,
    scenario: Annotated[str, Help("What its records and releases belong to.")] = "default",
    upgrade: Annotated[
        Upgrade, Help("When a newer release is taken: at the next start, after a yes, by `update`.")
    ] = "auto",
    on_daemon_down: Annotated[
        OnDaemonDown | None,
        Help("Start without the daemon: on the last release, or bypass Reef (default in overlay)."),
    ] = None,
    keep_keys: Annotated[
        bool, Help("Its own key or login goes on to your provider (overlay; key: agent).", "--keep-keys")
    ] = False,
    agent_version: Annotated[str | None, Help("Another version that Reef knows.")] = None,
    link: Annotated[bool, Help("Also put the command into ~/.local/bin.", "--link")] = False,
    dry_run: Annotated[bool, Help("Only say what would be done.", "--dry-run")] = False,
    as_json: AsJson = False,
) -> None:
    """Takes the agent that is on PATH if it is not older than the one Reef knows, else downloads that at a pinned
    version into Reef's home; and writes the command that runs it. Nothing else is changed: not your own agent, not your
    shell's files. Run it again to change a choice or to upgrade.
    """
    chosen = agent.load(home(), adapter)
    mode = mode or chosen.first_mode(keep_keys=keep_keys)
    down = on_daemon_down or ("bypass" if mode == "overlay" else "fail")
    choice = Choice(scenario, upgrade, link, mode, down, agent_version, keep_keys)
    if not dry_run:
        home().prepare()
    made = _applied(chosen, choice, dry_run=dry_run)
    if as_json:
        output.json(made.described())
    elif dry_run:
        _describe(made)
    else:
        output.line(output.visible(str(made.home / made.wrapper)))


def _applied(adapter: Adapter, choice: Choice, *, dry_run: bool) -> InstallPlan:
    """The plan that was carried out: with what is on PATH, where that works, else with packages."""
    found = plan.find(adapter, home(), choice.version)
    if found is not None:
        made = plan.found_plan(adapter, home(), choice, found)
        if dry_run:
            return made
        try:
            apply.apply(made, diagnostics.say)
            return made
        except ReefError as error:
            if not adapter.installs:
                raise
            diagnostics.say(f"{error.message}\n{found.words[0]} is not used; Reef installs its own")
    made = plan.plan(adapter, home(), choice, find_node())
    if not dry_run:
        apply.apply(made, diagnostics.say)
    return made


def _describe(made: InstallPlan) -> None:
    told = made.described()
    what = ", ".join(told["packages"]) or f"nothing: {made.command[0]} is there"
    output.line(f"{made.adapter} {made.version}")
    output.line(f"downloads  {what}" + (f" ({made.installed_mb} MB on disk)" if made.packages else ""))
    output.line(f"runs       {output.visible(' '.join(made.command))}")
    for path in told["files"]:
        output.line(f"writes     {output.visible(path)}")


def list_adapters(*, as_json: AsJson = False) -> None:
    whole, wrong = agent.found(home())
    for error in wrong:
        diagnostics.say(error.message)
    changed = by_hand.found(home())
    rows = [{**_row(adapter), "edited": changed.get(adapter.name, [])} for adapter in whole]
    if as_json:
        output.json({"items": rows})
        return
    columns = ("adapter", "version", "mode", "scenario", "upgrade", "release", "running")
    output.table(columns, [[row[name] for name in columns] for row in rows])
    for row in rows:
        if row["command"] is not None:
            diagnostics.say(f"to run it: {row['command']}")
    if missing := [row["adapter"] for row in rows if row["command"] is None]:
        diagnostics.say(f"not installed yet: reef harness install --adapter {'|'.join(map(str, missing))}")
    by_hand.tell(changed)


def _row(adapter: Adapter) -> dict[str, object]:
    name = adapter.name
    place = Place(home().agents / name)
    row: dict[str, object] = {"adapter": name, "version": adapter.version, "summary": adapter.summary}
    if receipt.read(home().root, name) is None:
        return row | dict.fromkeys(("mode", "scenario", "upgrade", "release", "running", "command"))
    chosen = session.installation(place, name)
    now = active.load(place.active, chosen["scenario"])
    with session.turn(place):
        running = len(session.living(place))
    return row | {
        "version": chosen["version"],
        "mode": chosen.get("mode", "isolated"),
        "scenario": chosen["scenario"],
        "upgrade": chosen["upgrade"],
        "release": now.release_id if now else None,
        "running": running,
        "command": str(home().commands / adapter.command),
    }


def update(*, adapter: _Installed = None, as_json: AsJson = False) -> None:
    """The next run takes the newest release, whatever was chosen at installation. What runs goes on as it is."""
    adapter = _installed(adapter)
    place = Place(home().agents / adapter)
    installed = wrapped.as_installed(home(), adapter, place)
    scenario = installed.chosen["scenario"]
    told, serves = wrapped.deliver(home(), adapter, scenario)
    with session.turn(place):
        last = active.load(place.active, scenario)
        active.forward(last, told, place.active)
        active.save(place.active, scenario, active.Active(told.release_id, told.number, serves))
    changed = last is None or last.release_id != told.release_id
    lacks = rendering.left_out(told, installed.adapter, installed.mode)
    if as_json:
        facts = {**told.facts(), "left_out": lacks}
        output.json({"adapter": adapter, "scenario": scenario, "changed": changed, **facts})
        return
    output.line(output.visible(f"{told.said()}{'' if changed else ' (in use already)'}"))
    if lacks:
        diagnostics.say(lacks)


def uninstall(
    *,
    adapter: _Installed = None,
    purge: Annotated[bool, Help("Also your conversations, logins and settings inside it.", "--purge")] = False,
    as_json: AsJson = False,
) -> None:
    """Removes what the receipt lists. A file that you changed stays and is named, and so does what is yours."""
    adapter = _installed(adapter)
    place = Place(home().agents / adapter)
    private_directory(home().run)
    with locked(home().root / plan.lock(adapter), lambda: diagnostics.say(f"{adapter} is being installed; waiting")):
        kept = _taken_away(place, adapter, purge)
    if as_json:
        output.json({"adapter": adapter, "kept": kept})
        return
    output.line(f"{adapter} is uninstalled")
    for path in kept:
        output.line(f"kept, it is yours: {output.visible(path)}")


def _installed(adapter: str | None) -> str:
    """The agent that is meant. Raises NotFound, or UsageError where several are installed and none is named."""
    if adapter is not None:
        if not (home().agents / adapter).is_dir():
            raise NotFound(f"{adapter} is not installed", hint="reef harness list")
        return adapter
    whole = [place.parent for place in home().agents.glob("*/receipt")]
    there = sorted(folder.name for folder in whole or home().agents.glob("*/"))
    if len(there) > 1:
        raise UsageError("several agents are installed", hint=f"--adapter {'|'.join(there)}")
    if not there:
        raise NotFound("no agent is installed", hint="reef harness list")
    return there[0]


def _taken_away(place: Place, adapter: str, purge: bool) -> list[str]:
    """What stays, being the person's. The receipt goes last: cut off anywhere, the same command does the rest."""
    if receipt.read(home().root, adapter) is None:
        if purge and set(place.root.iterdir()) <= {place.user, place.edited}:  # an uninstall before kept it
            receipt.erase(place.root)
            return []
        again = f"reef harness install --adapter {adapter} makes it whole; it can be uninstalled then"
        raise NotFound(f"{adapter} is not installed, at most a part of it in {place.root}", hint=again)
    with session.turn(place):
        running = session.sweep(place)
    if running:
        runs = "1 run" if len(running) == 1 else f"{len(running)} runs"
        have = "has" if len(running) == 1 else "have"
        raise Conflict(f"{runs} of {adapter} {have} not ended yet", hint=f"leave {adapter} first, then try again")
    shelf.prune(place.shelf, (), spared=0)
    for passing in place.passing():
        if passing.is_dir():
            receipt.erase(passing)
        else:
            passing.unlink(missing_ok=True)
    if purge:
        receipt.erase(place.user)
        receipt.erase(place.edited)
    receipt.remove_empty(place.user)  # on the person's own configuration nothing of theirs comes to lie there
    kept = receipt.uninstall(home().root, adapter)
    kept += [str(path) for path in (place.user, place.edited) if path.is_dir()]
    told = any(Path(path).is_relative_to(place.root) for path in kept)
    return kept if told or not place.root.is_dir() else [*kept, str(place.root)]
