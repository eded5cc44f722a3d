"""What all screens share: the connection, the clock, what was rated, how the daemon is."""

from collections.abc import Callable
from dataclasses import dataclass, field

from daemon.core.client import Client
from daemon.core.paths import Home
from reef_cli.tui.rating import Ratings

Clock = Callable[[], int]


@dataclass(slots=True)
class Desk:
    """``tell`` takes a sentence about what became of feedback, from any thread. ``lost`` says why the daemon does not
    answer ("" before the first try), None while it does; ``running`` is False where none is there."""

    home: Home
    now: Clock
    tell: Callable[[str], object]
    client: Client = field(init=False)
    ratings: Ratings = field(init=False)
    lost: str | None = ""
    running: bool = True
    engine: str = ""

    def __post_init__(self) -> None:
        self.client = Client(self.home.socket)
        self.ratings = Ratings(self.home, self.client, self.tell)
