"""What an adapter is: how one coding agent is installed, and what its configuration needs to know.

Everything else is the same for all of them: plans, the wrapper, releases on the shelf, sessions. Data belongs in
``harness_templates/<adapter>/``; an adapter is code only where an agent's format is its own.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Final, Protocol

from adapters.plan import Choice, InstallPlan, Node
from daemon.core.errors import NotFound
from daemon.core.paths import Home


class Adapter(Protocol):
    name: str
    version: str
    summary: str
    #: What makes it ask Reef's model once, without a person, and end.
    check: tuple[str, ...]

    def plan(self, home: Home, node: Node, choice: Choice) -> InstallPlan:
        """How it is installed. Raises ReefError where it cannot run on this machine."""

    def models(self, names: Sequence[str], context: int) -> list[dict[str, object]]:
        """The daemon's models as this agent's configuration lists them; ``context`` in tokens."""


#: Short name → ``"module:Class"``.
ADAPTERS: Final = {"pi": "adapters.pi:Pi"}


def adapter(name: str) -> Adapter:
    """Raises NotFound for a name that nobody has."""
    if name not in ADAPTERS:
        raise NotFound(f"no adapter is called {name!r}", hint=f"there is: {', '.join(ADAPTERS)}")
    module, _, found = ADAPTERS[name].partition(":")
    made: Adapter = getattr(import_module(module), found)()
    return made
