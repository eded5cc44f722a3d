"""What ``reef-<adapter>`` does before it becomes the agent: which release, checked; a directory of its own; then exec.

The head is resolved once. Whatever is wrong with it (no daemon, no signature, a step back), the run takes the last
good release of this machine and says so; only where there is none does it refuse. Nothing here stays: arguments,
terminal, signals and the exit code are the agent's own.
"""

import math
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from adapters import active, agent, delivery, edits, rendering, session, shelf
from adapters.active import Active
from adapters.agent import Adapter, Mode
from adapters.delivery import Delivery
from adapters.session import Place
from daemon.core.errors import ReefError, Unreachable, UsageError
from daemon.core.ids import new_id
from daemon.core.paths import Home, home
from reef_cli import declared, diagnostics, proxies
from reef_cli.becoming import become
from reef_cli.lifecycle import ensure_daemon
from reef_cli.output import visible

_POLL_SECONDS: Final = 60
_CHECK_SECONDS: Final = 120
_CHECK_SAID: Final = 500
#: What the daemon tells beside the release, kept for a start without it.
_SERVES: Final = ("url", "models", "context")


class Wrapped(NamedTuple):
    """An adapter as it is installed here. ``place``: where a run's state is kept."""

    home: Home
    place: Place
    adapter: Adapter
    mode: Mode
    chosen: Mapping[str, Any]

    @property
    def scenario(self) -> str:
        return os.environ.get("REEF_SCENARIO") or str(self.chosen["scenario"])


class Chosen(NamedTuple):
    """The release of a run; ``files`` are what an agent reads of it. ``before``: the one of the run before.

    ``newer``: a head that this run leaves alone.
    """

    told: Delivery
    files: dict[str, str]
    serves: dict[str, Any]
    before: str | None
    newer: Delivery | None = None

    @property
    def activated(self) -> bool:
        """It is another one than the run before had."""
        return self.before is not None and self.before != self.told.release_id


def main(name: str) -> NoReturn:
    """Become the agent. The exit code is its own, or ours where it never began."""
    try:
        if os.environ.get("REEF_CHECK"):
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a check has something to tidy up
            check(home(), name)
            sys.exit(0)
        wrapped = as_installed(home(), name, Place(home().agents / name))
        program, words, environment = _ready(wrapped, run=new_id("run"), arguments=sys.argv[1:])
        become(program, words, environment)
    except ReefError as error:
        sys.exit(diagnostics.failure(error, as_json=False))
    except OSError as error:
        failure = ReefError(f"{name} cannot start: {error}", hint=f"reef harness install --adapter {name}")
        sys.exit(diagnostics.failure(failure, as_json=False))
    except KeyboardInterrupt:
        sys.exit(130)


def check(where: Home, name: str) -> None:
    """Run the agent once, on a request that Reef answers without a model; nothing of it stays. Raises ReefError where
    none arrives."""
    run = new_id("check")
    try:
        with tempfile.TemporaryDirectory(prefix="reef-check-") as folder:
            wrapped = as_installed(where, name, Place(Path(folder)))
            asks, scratch = wrapped.adapter.check, wrapped.mode.scratch
            program, words, environment = _ready(wrapped, run=run, arguments=asks)
            token = where.agent_token.read_text().strip()
            private = {"REEF_USER_DIRECTORY": str(wrapped.place.user), "REEF_TOKEN": token}
            environment = _changed(environment, session.variables(scratch, private))
            done = subprocess.run(
                words,
                executable=program,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=_CHECK_SECONDS,
                check=False,
            )
        said = done.stdout.strip() or f"it ended with {done.returncode} and said nothing"
    except subprocess.TimeoutExpired:
        said = f"it has not ended after {_CHECK_SECONDS} s"
    told = ensure_daemon(where).get("/reef/harness/check", run=run)
    if not told["seen"]:
        raise ReefError(f"{name} was started and did not ask Reef: {said[-_CHECK_SAID:]}", hint=told["hint"])


def as_installed(where: Home, name: str, place: Place) -> Wrapped:
    """Raises NotFound where the adapter is not installed."""
    chosen = session.installation(Place(where.agents / name), name)
    adapter = agent.load(where, name).at(chosen["version"])
    mode = adapter.mode(chosen.get("mode", "isolated"), keep_keys=chosen.get("keep_keys", False))
    return Wrapped(where, place, adapter, mode, chosen)


def _ready(wrapped: Wrapped, *, run: str, arguments: Sequence[str]) -> tuple[str, list[str], dict[str, str]]:
    """Program, words and environment of a run."""
    where, place, adapter, mode, installed = wrapped
    command = installed["command"]
    try:
        chosen = _choose(wrapped)
    except Unreachable as error:
        if installed.get("on_daemon_down") != "bypass":
            raise
        diagnostics.say(f"Reef: {error.message}; {adapter.title} runs without it: your own model, nothing is recorded")
        return command[0], [*command, *arguments], dict(os.environ)
    seen = sys.stdout is not None and sys.stdout.isatty()  # None: closed by the caller
    if (adapter.silent or not seen) and (notice := _notice(chosen, adapter)):
        diagnostics.say(notice)
    if chosen.before != chosen.told.release_id and (lacks := rendering.left_out(chosen.told, adapter, mode)):
        diagnostics.say(f"Reef: {lacks}")
    values = _values(wrapped, run, chosen=chosen)
    with session.turn(place):
        known = edits.kept(place.edited)
        used = session.sweep(place)
        folder = shelf.put(place.shelf, chosen.told, chosen.files)
        shelf.prune(place.shelf, {*used.values(), folder.name}, active.releases(place.active))
        begun = session.begin(place, run, folder, adapter=adapter, mode=mode, values=values)
        seal, told = delivery.seal(chosen.told, key_of(where)), chosen.told
        active.save(place.active, wrapped.scenario, Active(told.release_id, told.number, chosen.serves, seal))
        edited = edits.kept(place.edited) - known
    for path in sorted(edited):
        diagnostics.say(f"Reef: what was changed of {adapter.title}'s files by hand is not used, and kept in {path}")
        diagnostics.say(f"  hint: reef harness edit --scenario {wrapped.scenario} changes them for every run")
    before = [] if arguments and arguments[0] in adapter.plain else begun.arguments
    own = {"REEF_HOME": str(where.root), "REEF_RUN": run, "REEF_SCENARIO": wrapped.scenario}
    return command[0], [*command, *before, *arguments], _environment({**begun.environment, **own})


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """The agent's: this process's with the changes, and with the daemon's address kept out of any proxy."""
    return _changed(os.environ, {**changes, **proxies.around(os.environ)})


def _changed(environment: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**environment, **changes}.items() if value is not None}


def key_of(where: Home) -> Path:
    """The allowed_signers file that releases are checked with."""
    return where.release_key.with_name(f"{where.release_key.name}.allowed")


def deliver(
    where: Home, name: str, scenario: str, release_id: str | None = None, *, seal: str = ""
) -> tuple[Delivery, dict[str, Any]]:
    """A release from the daemon (None: the head), checked, and what it serves. Raises Unreachable, Untrusted."""
    answer = ensure_daemon(where).get("/reef/harness", adapter=name, scenario=scenario, release_id=release_id)
    told = delivery.checked(delivery.parse(answer), key_of(where), seal)
    return told, {field: answer.get(field) for field in _SERVES}


def _choose(wrapped: Wrapped) -> Chosen:
    where, place, adapter, _, installed = wrapped
    name, scenario = adapter.name, wrapped.scenario
    last = active.load(place.active, scenario)
    before, seal = (last.release_id, last.seal) if last else (None, "")
    try:
        head, serves = deliver(where, name, scenario, seal=seal)
        active.forward(last, head, place.active)
        if last is None or head.release_id == last.release_id or _takes(installed["upgrade"], head, last):
            return _chosen(wrapped, head, serves, before)
        kept = _on_shelf(where, place, last, scenario) or deliver(where, name, scenario, last.release_id)[0]
        return _chosen(wrapped, kept, serves, before)._replace(newer=head)
    except UsageError:
        raise
    except ReefError as error:
        bypassed = isinstance(error, Unreachable) and installed.get("on_daemon_down") == "bypass"
        good = None if last is None or bypassed else _on_shelf(where, place, last, scenario)
        if last is None or good is None:
            raise
        _warn(error, good)
        return _chosen(wrapped, good, dict(last.serves), before)


def _chosen(wrapped: Wrapped, told: Delivery, serves: dict[str, Any], before: str | None) -> Chosen:
    return Chosen(told, rendering.rendered(told, wrapped.adapter, wrapped.mode), serves, before)


def _on_shelf(where: Home, place: Place, last: Active, scenario: str) -> Delivery | None:
    """The release used last, from this machine, checked as if it came anew; None where it is not there or changed."""
    found = shelf.find(place.shelf, last.release_id, scenario)
    try:
        return None if found is None else delivery.checked(found, key_of(where), last.seal)
    except ReefError:
        return None


def _takes(upgrade: str, head: Delivery, last: Active) -> bool:
    """Whether this run takes a newer head: as was chosen at installation, or as the person answers now."""
    if upgrade != "ask":
        return upgrade == "auto"
    if not diagnostics.watched():
        return False
    diagnostics.say(f"Reef: {head.said()} (you run {delivery.short(last.release_id)})")
    diagnostics.ask("Use it from now on? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _notice(chosen: Chosen, adapter: Adapter) -> str | None:
    """What an agent tells that has a place for it on its screen."""
    if chosen.newer:
        kept, command = delivery.short(chosen.told.release_id), f"reef harness update --adapter {adapter.name}"
        return visible(f"Reef: {chosen.newer.said()} · this run keeps {kept}: {command}")
    return visible(f"Reef: {chosen.told.said()}") if chosen.activated else None


def _warn(error: ReefError, kept: Delivery) -> None:
    diagnostics.say(f"Reef: {error.message}")
    if error.hint:
        diagnostics.say(f"  hint: {error.hint}")
    what = "will answer once the daemon runs" if isinstance(error, Unreachable) else "stays in use"
    diagnostics.say(f"  release {delivery.short(kept.release_id)} {what}")


def _values(wrapped: Wrapped, run: str, *, chosen: Chosen) -> dict[str, Any]:
    """The places of ``harness_templates``."""
    folder, serves, told, files = Path.cwd(), chosen.serves, chosen.told, chosen.files
    token = str(wrapped.home.agent_token)
    secret = wrapped.home.agent_token.read_text().strip()
    skills = rendering.listed(files, shelf.named(wrapped.place.shelf, told, files)) if wrapped.mode.listed else ""
    said = rendering.values(told, wrapped.adapter, skills)
    more = {"adapter": wrapped.adapter.name, "tag_release": told.release_id}
    if said["REEF_RULES"]:  # see daemon.store.carried
        more["tag_rules"] = "told"
    headers = declared.headers(run, told.scenario, folder, **more)
    return {
        **said,
        **rendering.models(wrapped.adapter.listing(wrapped.mode), serves["models"], serves["context"], said),
        **session.surroundings(wrapped.mode),
        "REEF_URL": serves["url"],
        "REEF_TOKEN_FILE": token,
        "REEF_TOKEN": secret,
        "REEF_HEADERS": headers,
        "REEF_TOLD_URL": declared.address(serves["url"], secret, headers),
        "REEF_ADAPTER": wrapped.adapter.name,
        "REEF_FOLDER": str(folder),
        "REEF_CONFIG_HOME": os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config"),
        # Where it is installed, for a check, too: what Python compiles then is there for the first run.
        "REEF_BYTECODE": str(Place(wrapped.home.agents / wrapped.adapter.name).bytecode),
        "REEF_QUOTED_TOKEN_FILE": shlex.quote(token),
        "REEF_SCENARIO": told.scenario,
        "REEF_RUN": run,
        "REEF_RELEASE_FACTS": told.facts(),
        "REEF_ACTIVATED": chosen.activated,
        "REEF_NEWER": chosen.newer.facts() if chosen.newer else None,
        "REEF_NOTICE": _notice(chosen, wrapped.adapter),
        "REEF_POLL_SECONDS": _poll_seconds(),
    }


def _poll_seconds() -> float:
    """Raises UsageError for a variable that is no number above 0."""
    said = os.environ.get("REEF_POLL_SECONDS", str(_POLL_SECONDS))
    try:
        seconds = float(said)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise UsageError(f"REEF_POLL_SECONDS is {said!r}, no number of seconds above 0", hint="unset REEF_POLL_SECONDS")
    return seconds
