"""What all screens share: the connection, the clock, what was rated, how the daemon is, how the person wants it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from daemon.core.client import Client
from daemon.core.paths import Home
from reef_cli.tui.keys import Key
from reef_cli.tui.rating import Ratings
from reef_cli.tui.settings import DEFAULTS, Settings, rebound

Clock = Callable[[], int]


@dataclass(slots=True)
class Desk:
    """``lost`` says why the daemon does not answer ("" before the first try), None while it does; ``running`` is False
    where none is there."""

    home: Home
    now: Clock
    settings: Settings = DEFAULTS
    client: Client = field(init=False)
    ratings: Ratings = field(init=False)
    lost: str | None = ""
    running: bool = True
    engine: str = ""
    keys: tuple[Key, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.client = Client(self.home.socket)
        self.ratings = Ratings(self.client)
        self.keys = rebound(self.settings.keys)

    def key(self, id: str) -> str:
        """What a person presses for that action: its first key."""
        return next(key.shown.split()[0] for key in self.keys if key.id == id)
