"""A program that publishes releases of one scenario and says on stdout which ones are acknowledged.

python -m tests.daemon.store.releases.publishing HOME NAME FIRST COUNT

Started again after a kill -9 under the same name, it goes on with the jobs that were not acknowledged.
"""

import fcntl
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daemon.core.errors import Conflict
from daemon.core.paths import Home
from daemon.core.releases import Release
from daemon.store.releases import Releases
from tests.fakes.releases import ACCEPTED, candidate


def main(root: str, name: str, first: str, count: str) -> None:
    home = Home(Path(root))
    releases = Releases.open(home)
    for number in range(int(first), int(count)):
        with turn(home):
            print(number, published(releases, f"job_{name}_{number}").id, flush=True)


def published(releases: Releases, job: str) -> Release:
    while True:
        proposed = releases.propose(candidate(job, releases.standing("default").id), ACCEPTED)
        if proposed.number:
            return proposed
        try:
            return releases.publish(proposed, proposed.parent)
        except Conflict:  # as a daemon would: the stale candidate is given up, the next job starts from the new head
            job = f"{job}x"


@contextmanager
def turn(home: Home) -> Iterator[None]:
    """Most take turns, so that the time goes into releases; one in eight pushes in and makes conflicts."""
    with (home.run / "turn").open("w") as file:
        if random.random() > 1 / 8:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main(*sys.argv[1:])
