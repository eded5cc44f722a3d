"""What all screens share: the connection, the clock, what was rated, how the daemon is."""

from collections.abc import Callable
from dataclasses import dataclass, field

from daemon.core.client import Client
from daemon.core.paths import Home
from reef_cli.tui.rating import Ratings

Clock = Callable[[], int]


@dataclass(slots=True)
class Desk:
    """``lost`` says why the daemon does not answer ("" before the first try), None while it does; ``running`` is False
    where none is there. ``note`` is what a person should know about it all the same. ``fixed`` says why nothing can be
    changed; ``doubt`` is to be called when a request found no daemon."""

    home: Home
    now: Clock
    client: Client
    doubt: Callable[[], None]
    fixed: str | None = None
    ratings: Ratings = field(init=False)
    lost: str | None = ""
    running: bool = True
    engine: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        self.ratings = Ratings(self.client)
