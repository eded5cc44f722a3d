"""What installing a coding agent means, as data. Three readings of it: `apply`, `script` and `receipt`.

A plan only describes: packages at pinned versions, files, a command. Nothing in it lies outside Reef's home but the one
link that a person may ask for: the user's agent directories, rc files and caches stay as they are (DESIGN §6).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from adapters import agent, machine, template, wrapper
from adapters.agent import Adapter, Install, ModeName, Package, numbers
from adapters.machine import Node, Program
from daemon.core.errors import Conflict, NotFound, ReefError
from daemon.core.paths import Home

#: When a newer release is taken: at the next start, after a yes in the terminal, or by `reef harness update` alone.
Upgrade = Literal["auto", "ask", "pinned"]
#: What a start without the daemon does: the last release, on a model that may not answer, or the agent as it is.
OnDaemonDown = Literal["fail", "bypass"]
_NODE_HINT: Final = "https://nodejs.org/en/download"


class PlannedFile(NamedTuple):
    """A file that every install rewrites. ``path`` is below Reef's home, with ``/``."""

    path: str
    text: str
    mode: int = 0o600


class Choice(NamedTuple):
    """What a person decides at installation. ``link``: also a link to the wrapper in ``~/.local/bin``. ``version``:
    None for the one that the adapter names first. ``keep_keys``: the agent's own key or login goes on to a provider."""

    scenario: str = "default"
    upgrade: Upgrade = "auto"
    link: bool = False
    mode: ModeName = "isolated"
    on_daemon_down: OnDaemonDown = "fail"
    version: str | None = None
    keep_keys: bool = False


class InstallPlan(NamedTuple):
    """One agent below ``home / folder``. Without ``packages`` it is installed already. ``command`` runs it; ``wrapper``
    is what a person calls, below ``home`` too. ``installer`` is npm or a Python, as the packages need it.

    ``asks_version`` with ``environment``, which keeps it from touching anything, says ``says_version`` in its last
    line.
    """

    adapter: str
    version: str
    home: Path
    packages: tuple[Package, ...]
    files: tuple[PlannedFile, ...]
    command: tuple[str, ...]
    wrapper: str
    installer: Path | None
    asks_version: tuple[str, ...]
    says_version: str
    environment: Mapping[str, str]
    link: bool = False

    @property
    def folder(self) -> str:
        return f"agents/{self.adapter}"

    @property
    def root(self) -> Path:
        return self.home / self.folder

    @property
    def pip(self) -> bool:
        return bool(self.packages) and self.packages[0].kind == "pip"

    @property
    def installed_mb(self) -> int:
        return sum(package.installed_mb for package in self.packages)

    @property
    def specs(self) -> tuple[str, ...]:
        return tuple(package.spec for package in self.packages)

    @property
    def contents(self) -> tuple[str, ...]:
        """Everything that an install leaves, files and whole folders, below ``home``: what the receipt lists."""
        made = (f"{self.folder}/{name}" for name in ("node_modules", "package.json", "package-lock.json", "venv"))
        return (*made, *(file.path for file in self.files))

    @property
    def receipt(self) -> str:
        return f"{self.folder}/receipt"

    @property
    def lock(self) -> str:
        """Held by who installs or uninstalls it, and by npm or pip, which go on where that was killed."""
        return lock(self.adapter)

    def described(self) -> dict[str, Any]:
        """For ``--dry-run``."""
        return {
            "adapter": self.adapter,
            "version": self.version,
            "packages": list(self.specs),
            "installed_mb": self.installed_mb,
            "files": [str(self.home / file.path) for file in self.files],
            "runs": list(self.command),
            "command": str(self.home / self.wrapper),
            "link": self.link,
        }


def lock(adapter: str) -> str:
    """`InstallPlan.lock`. Below Reef's home, beside nothing that an uninstall takes away."""
    return f"run/install-{adapter}.lock"


def plan(adapter: Adapter, home: Home, choice: Choice, node: Node | None) -> InstallPlan:
    """The version that was chosen, from its registry. ``node`` is the machine's. Raises NotFound where this machine
    lacks what it needs."""
    install = _install(adapter, choice.version)
    packages, installer, values = install.packages, None, {"REEF_ROOT": str(home.agents / adapter.name)}
    if packages[0].kind == "npm":
        packages, node = _with_node(adapter, install, node)
        installer = node.npm
        runner = f"{values['REEF_ROOT']}/node_modules/{packages[-1].name}/bin/node"
        values["REEF_NODE"] = runner if packages != install.packages else str(node.path)
    else:
        installer = machine.find_python(install.python)
        if installer is None:
            oldest = ".".join(map(str, install.python))
            raise NotFound(
                f"{adapter.title} {install.version} needs Python {oldest} or newer on PATH", hint="install it"
            )
    command = tuple(template.in_text(word, values) for word in install.run)
    made = found_plan(adapter, home, choice, Program(command, install.version))
    if install.asks:
        asks = tuple(template.in_text(word, values) for word in install.asks)
        made = made._replace(asks_version=asks, says_version=install.version)
    return made._replace(packages=packages, installer=installer)


def find(adapter: Adapter, home: Home, version: str | None = None) -> Program | None:
    """The agent on PATH, where it says a version: that one, or else one not older than the adapter's own. Reef's
    wrappers and installs are none."""
    import shutil
    import tempfile

    path = shutil.which(adapter.program)
    if path is None or Path(path).resolve().is_relative_to(home.root.resolve()):
        return None
    before, _, after = adapter.says_version.partition("$VERSION")
    with tempfile.TemporaryDirectory(prefix="reef-version-") as private:
        quiet = _quiet(adapter, private)
        said = machine.answer([path, *adapter.asks_version], {**quiet, "HOME": private})
    if not (said.startswith(before) and said.endswith(after)):
        return None
    named = said[len(before) : len(said) - len(after)]
    wanted = version or adapter.version or "0"
    fits = named == version if version else bool(numbers(named)) and numbers(named) >= numbers(wanted)
    return Program((path,), named) if fits else None


def _install(adapter: Adapter, version: str | None) -> Install:
    kind = machine.kind()
    known = [one for one in adapter.installs if one.on in ("", kind)]
    fitting = [one for one in known if version in (None, one.version)]
    if fitting:
        return fitting[0]
    if not adapter.installs:
        raise NotFound(f"{adapter.program} is not on PATH, and {adapter.name} names no package", hint="install it")
    if not known:
        raise NotFound(
            f"{adapter.title} has no package for this machine ({kind})", hint=f"put {adapter.program} on PATH"
        )
    there = ", ".join(one.version for one in known)
    raise NotFound(f"no {adapter.title} {version} is known", hint=f"--agent-version, one of: {there}")


def _with_node(adapter: Adapter, install: Install, node: Node | None) -> tuple[tuple[Package, ...], Node]:
    """The packages, and a Node.js of their own after them where the machine's is too old."""
    if node is None:
        raise NotFound(f"{adapter.title} needs Node.js with npm on PATH", hint=_NODE_HINT)
    if node.version >= install.node:
        return install.packages, node
    private = machine.packaged_node()
    if private is None:
        oldest = ".".join(map(str, install.node))
        raise ReefError(f"{adapter.title} {install.version} needs Node.js {oldest} or newer", hint=_NODE_HINT)
    return (*install.packages, private), node


def found_plan(adapter: Adapter, home: Home, choice: Choice, program: Program) -> InstallPlan:
    """The agent that is there, with what Reef puts around it."""
    adapter.mode(choice.mode, keep_keys=choice.keep_keys)
    for other in agent.found(home)[0]:
        if other.command == adapter.command and other.name != adapter.name:
            raise Conflict(f"{other.name} has the command {other.command} already", hint=f"give {adapter.name} another")
    folder = f"agents/{adapter.name}"
    chosen = {
        "adapter": adapter.name,
        "version": program.version,
        "scenario": choice.scenario,
        "upgrade": choice.upgrade,
        "mode": choice.mode,
        "on_daemon_down": choice.on_daemon_down,
        "keep_keys": choice.keep_keys,
        "command": program.words,
    }
    return InstallPlan(
        adapter=adapter.name,
        version=program.version,
        home=home.root,
        packages=(),
        files=(
            PlannedFile(f"{folder}/install.json", json.dumps(chosen, indent=2) + "\n"),
            PlannedFile(f"bin/{adapter.command}", wrapper.text(home, adapter), 0o700),
        ),
        command=program.words,
        wrapper=f"bin/{adapter.command}",
        installer=None,
        asks_version=(*program.words, *adapter.asks_version),
        says_version=adapter.says_version.replace("$VERSION", program.version),
        environment=_quiet(adapter, str(home.root / folder / "private")),
        link=choice.link,
    )


def _quiet(adapter: Adapter, private: str) -> dict[str, str]:
    return {name: template.word(source, {"REEF_PRIVATE": private}) for name, source in adapter.quiet.items()}
