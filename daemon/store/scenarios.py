"""What a person chose for scenarios while the daemon ran: made, removed, how they learn. One small file.

It goes before the configuration file, being said later. Never holds a key or an address: where a scenario's requests
go is decided by the configuration and by signed releases, not by whoever can reach a port.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from daemon.core.config import ScenarioConfig
from daemon.core.errors import ConfigError
from daemon.core.paths import write_private
from daemon.core.releases import Policy


class Training(StrEnum):
    """What starts a scenario's recipe (the published protocol's words). Instructions do in every mode."""

    HYBRID = "hybrid"  # experience and instructions
    AUTO = "auto"  # the same here
    MANUAL = "manual"  # instructions alone


@dataclass(frozen=True, slots=True)
class Choice:
    """``policy`` None: as the configuration says. ``removed_ns``: when it was removed, None while it is there."""

    created_ns: int | None = None
    removed_ns: int | None = None
    policy: Policy | None = None
    training: Training = Training.HYBRID


class Choices:
    """All scenarios' choices. Reading is free; `change` writes a file: call it off the event loop."""

    def __init__(self, path: Path, kept: Mapping[str, Choice]) -> None:
        self._path = path
        self._kept = dict(kept)
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: Path) -> "Choices":
        """Raises ConfigError for a file that holds none."""
        try:
            raw = path.read_bytes()
            told = json.loads(raw)
            return cls(path, {str(name): _choice(one) for name, one in told.items()})
        except FileNotFoundError:
            return cls(path, {})
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{path} does not hold what was chosen for scenarios: {error}",
                hint=f"correct it, or move it away: mv {path} {path}.old",
            ) from error

    def get(self, scenario: str) -> Choice:
        return self._kept.get(scenario, Choice())

    def names(self) -> list[str]:
        """Those that were made by name and are still there."""
        return [name for name, one in self._kept.items() if one.created_ns and not one.removed_ns]

    def made(self, scenario: str) -> Choice:
        """It is there from now on, if it was not."""
        old = self.get(scenario)
        if old.created_ns and not old.removed_ns:
            return old
        return self.change(scenario, created_ns=time.time_ns(), removed_ns=None)

    def removed(self, scenario: str) -> None:
        """It is gone, and with it what was chosen."""
        with self._lock:
            self._keep(scenario, Choice(removed_ns=time.time_ns()))

    def change(self, scenario: str, **changes: Any) -> Choice:
        """Durable when this returns."""
        with self._lock:
            return self._keep(scenario, replace(self.get(scenario), **changes))

    def _keep(self, scenario: str, choice: Choice) -> Choice:
        kept = self._kept | {scenario: choice}
        write_private(self._path, json.dumps({name: asdict(one) for name, one in kept.items()}, indent=1).encode())
        self._kept = kept
        return choice


class Chosen(Mapping[str, ScenarioConfig]):
    """The configuration's scenarios with what was chosen since; one that nobody named is there, as by default."""

    def __init__(self, configured: Mapping[str, ScenarioConfig], choices: Choices) -> None:
        self._configured = configured
        self._choices = choices

    def __getitem__(self, scenario: str) -> ScenarioConfig:
        configured, policy = self._configured.get(scenario, ScenarioConfig()), self._choices.get(scenario).policy
        return configured if policy is None else replace(configured, policy=policy.value)

    def by_itself(self, scenario: str) -> bool:
        """Whether experience alone may start its recipe."""
        return self._choices.get(scenario).training is not Training.MANUAL

    def __iter__(self) -> Iterator[str]:
        return iter(self._configured)

    def __len__(self) -> int:
        return len(self._configured)


def _choice(told: Mapping[str, Any]) -> Choice:
    """Raises ValueError, TypeError."""
    policy = told.get("policy")
    return Choice(
        created_ns=_moment(told.get("created_ns")),
        removed_ns=_moment(told.get("removed_ns")),
        policy=None if policy is None else Policy(policy),
        training=Training(told.get("training", Training.HYBRID)),
    )


def _moment(told: object) -> int | None:
    if told is not None and (not isinstance(told, int) or isinstance(told, bool)):
        raise ValueError(f"{told!r} is no moment in nanoseconds")
    return told
