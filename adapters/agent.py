"""A coding agent described as data: how it is installed, and what each way of wrapping it puts before the agent.

``harness_templates/NAME/adapter.json`` is one that comes with Reef, ``$REEF_HOME/adapters/NAME.json`` one more of the
person's (or theirs instead of ours). No code belongs to an agent: what its format needs is said in these fields, see
`adapters.template` for the places in them.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from adapters import described, template
from adapters.template import Source
from daemon.core.errors import ConfigError, NotFound
from daemon.core.paths import Home

#: Its own configuration directory, or the person's with more on top.
ModeName = Literal["isolated", "overlay"]
MODES: Final = described.MODES
_SHIPPED: Final = Path(__file__).parents[1] / "harness_templates"
_RULES: Final = "REEF_RULES"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
#: Bytes; the largest of Reef's has 12,000.
_LARGEST: Final = 1 << 20


class Package(NamedTuple):
    """A package of a registry at one version. ``installed_mb`` with all it depends on, measured; ``integrity`` of its
    archive as npm writes it (pip: ``sha256:…``): another file under this name and version is refused before it runs.
    """

    name: str
    version: str
    installed_mb: int
    integrity: str
    kind: Literal["npm", "pip"] = "npm"

    @property
    def spec(self) -> str:
        return f"{self.name}{'==' if self.kind == 'pip' else '@'}{self.version}"


class Install(NamedTuple):
    """One version of an agent. ``on``: the only machine that it is for, as in ``linux-x64``. ``node`` and ``python``:
    the oldest that runs it. ``run`` starts it; ``$REEF_ROOT`` in it is its folder, ``$REEF_NODE`` the Node.js. ``asks``
    says its version alone, for an agent that does not say it itself."""

    version: str
    packages: tuple[Package, ...]
    run: tuple[str, ...]
    on: str = ""
    asks: tuple[str, ...] = ()
    node: tuple[int, ...] = ()
    python: tuple[int, ...] = ()


class Words(NamedTuple):
    """Arguments before the person's own. ``only``: a file or folder of the session, or a value's name, without which
    they are left out. ``each``: a folder of the session; they are said for each ``$REEF_EACH`` in it."""

    words: tuple[Source, ...]
    only: str = ""
    each: str = ""


class Mode(NamedTuple):
    """``release`` files are made once a release and read-only, ``session`` files for each session; both are mappings of
    path to source. ``shared`` names belong to the person, outlive sessions and upgrades, and are linked into the
    session's folder (``/`` at the end: a folder); ``seeds`` are what of the person's starts from a template.

    ``skills``, ``prompts`` and ``extensions`` are folders for what a release brings; without one prompts become skills,
    skills are ``listed`` in the rules where those are told anew each run, and the others are left out. ``open`` are
    those to which the agent itself adds, and files that it rewrites: what it puts there stays out of the release.
    ``environment``: None takes a variable away. ``scratch`` is set besides where the agent runs only to be checked: it
    keeps it out of the person's folders. ``own`` are variables of ``environment`` that stay as the person has them
    where the agent's own key or login goes on to their provider. ``model``: fields of an adapter's ``model`` that are
    others here.
    """

    release: Mapping[str, Source] = {}
    session: Mapping[str, Source] = {}
    shared: tuple[str, ...] = ()
    seeds: Mapping[str, Source] = {}
    skills: str | None = None
    prompts: str | None = None
    extensions: str | None = None
    open: tuple[str, ...] = ()
    environment: Mapping[str, Source | None] = {}
    scratch: Mapping[str, Source | None] = {}
    own: tuple[str, ...] = ()
    model: Mapping[str, Any] = {}
    arguments: tuple[Words, ...] = ()
    listed: bool = False


class Adapter(NamedTuple):
    """``program`` is its name on PATH, ``command`` what the person calls instead. ``asks_version`` with its answer's
    last line ``says_version``; ``quiet`` keeps that run from touching anything. ``check`` makes it ask Reef's model
    once, without a person, and end. ``plain``: its own commands, which a mode's arguments must not come before.

    ``model``: how one of the daemon's models is listed, ``mcp`` how an MCP server is (``local``, ``remote``),
    ``thinking`` its words for how much to think; ``since``: the first version that has one of these. ``silent``: no
    screen of its own shows what is new (or none that a person had not to let first); the wrapper says it, as it does
    wherever no terminal is looked at.
    """

    name: str
    title: str
    command: str
    summary: str
    folder: Path
    program: str
    check: tuple[str, ...]
    modes: Mapping[str, Mode]
    plain: tuple[str, ...] = ()
    installs: tuple[Install, ...] = ()
    asks_version: tuple[str, ...] = ("--version",)
    says_version: str = "$VERSION"
    quiet: Mapping[str, Source] = {}
    model: Any = "$REEF_MODEL_ID"
    mcp: Mapping[str, Any] = {}
    thinking: Mapping[str, str] = {}
    since: Mapping[str, str] = {}
    silent: bool = False

    @property
    def version(self) -> str | None:
        """The version that is installed unless another is asked for; None: only one found on PATH."""
        return self.installs[0].version if self.installs else None

    def first_mode(self, *, keep_keys: bool = False) -> ModeName:
        """The one that is meant where nobody says: isolated, where the agent can be, and needs no key of its own."""
        return "isolated" if "isolated" in self.modes and not keep_keys else "overlay"

    def at(self, version: str) -> "Adapter":
        """Without what that version has not yet."""
        lacks: dict[str, Any] = {name: {} for name, first in self.since.items() if numbers(version) < numbers(first)}
        return self._replace(**lacks)

    def listing(self, mode: Mode) -> Any:
        """How one of the daemon's models is listed in this mode."""
        return {**self.model, **mode.model} if mode.model else self.model

    def mode(self, name: str, *, keep_keys: bool = False) -> Mode:
        """``keep_keys``: with the agent's own key or login. Raises NotFound for what this agent has not."""
        if name not in self.modes:
            raise NotFound(f"{self.name} has no mode {name!r}", hint=f"--mode {' or '.join(self.modes)}")
        mode = self.modes[name]
        if not keep_keys:
            return mode
        if not mode.own:
            can = [one for one, said in self.modes.items() if said.own]
            hint = (
                f"--mode {can[0]}"
                if can
                else "give it to Reef: key: env:NAME, keyring:NAME or file:PATH in config.yaml"
            )
            raise NotFound(f"{self.name} cannot send a key of its own through Reef ({name})", hint=hint)
        kept = {variable: said for variable, said in mode.environment.items() if variable not in mode.own}
        return mode._replace(environment=kept)


def names(home: Home) -> list[str]:
    """All there are, Reef's own and the person's."""
    shipped = {path.parent.name for path in _SHIPPED.glob("*/adapter.json")}
    own = (path for path in _own(home).glob("*.json") if path.is_file())
    return sorted(shipped | {path.stem for path in own if _NAME.fullmatch(path.stem)})


def load(home: Home, name: str) -> Adapter:
    """Raises NotFound for a name that nobody has, ConfigError for a description that says too little."""
    places = (_own(home) / f"{name}.json", _SHIPPED / name / "adapter.json")
    path = next((path for path in places if _NAME.fullmatch(name) and path.is_file()), None)
    if path is None:
        near = [one for one in names(home) if name and (name in one or one in name)]
        hint = f"--adapter {near[0]}" if len(near) == 1 else f"there is: {', '.join(names(home))}"
        raise NotFound(f"no adapter is called {name[:80]!r}", hint=hint)
    try:
        return _adapter(name, path.parent, _described(path))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}", hint=f"compare it with {_SHIPPED / 'pi' / 'adapter.json'}") from None


def found(home: Home) -> tuple[list[Adapter], list[ConfigError]]:
    """All whose description can be carried out, and what is wrong with the others."""
    whole, wrong = [], []
    for name in names(home):
        try:
            whole.append(load(home, name))
        except ConfigError as error:
            wrong.append(error)
    return whole, wrong


def numbers(version: str) -> tuple[int, ...]:
    """The release part of a version, to compare: ``1.6.0-beta`` is (1, 6, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def package(said: Mapping[str, Any]) -> Package:
    kind: Literal["npm", "pip"] = "pip" if "pip" in said else "npm"
    return Package(said[kind], said["version"], said["mb"], said["integrity"], kind)


def _own(home: Home) -> Path:
    return home.root / "adapters"


def _described(path: Path) -> dict[str, Any]:
    """Raises OSError, ValueError, RecursionError."""
    with path.open("rb") as file:
        raw = file.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise ValueError(f"it has more than {_LARGEST} bytes")
    said: dict[str, Any] = json.loads(raw)
    described.check(said)
    return said


def _adapter(name: str, folder: Path, said: dict[str, Any]) -> Adapter:
    fields = {**said, "name": name, "folder": folder}
    fields["modes"] = {mode: _mode(told, folder) for mode, told in said["modes"].items()}
    fields["installs"] = tuple(_install(told) for told in said.get("installs", ()))
    for listed in ("check", "asks_version", "plain"):
        if listed in fields:
            fields[listed] = tuple(fields[listed])
    return Adapter(**fields)


def _install(said: dict[str, Any]) -> Install:
    words: dict[str, Any] = {name: tuple(said[name]) for name in ("run", "asks") if name in said}
    oldest: dict[str, Any] = {name: numbers(said[name]) for name in ("node", "python") if name in said}
    packages = tuple(map(package, said["packages"]))
    return Install(version=said["version"], packages=packages, on=said.get("on", ""), **words, **oldest)


def _mode(said: dict[str, Any], folder: Path) -> Mode:
    lists = {name: tuple(said.get(name, ())) for name in ("shared", "open", "own")}
    mode = Mode(**{**said, **lists, "arguments": tuple(map(_words, said.get("arguments", ())))})
    each_run = [mode.session, mode.environment, mode.arguments]  # a release's files are made before it has its folder
    if mode.skills is None and _RULES in template.places(each_run, folder):
        return mode._replace(skills="skills", listed=True)
    return mode


def _words(said: Any) -> Words:
    if isinstance(said, dict) and "words" in said:
        return Words(**{**said, "words": tuple(said["words"])})
    return Words((said,))
