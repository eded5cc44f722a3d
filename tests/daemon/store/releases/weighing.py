"""A program that publishes weights and reads them back, and says how much memory that took at most, in MB.

python -m tests.daemon.store.releases.weighing HOME WEIGHTS
"""

import resource
import sys
from pathlib import Path

from daemon.core.paths import Home
from daemon.store.releases import Releases
from tests.fakes.releases import released


def main(root: str, weights: str) -> None:
    releases = Releases.open(Home(Path(root)))
    before = peak(resource.RUSAGE_SELF)
    release = released(releases, "job_1", weights=Path(weights))
    lora = releases.lora(release)
    assert lora is not None
    print(before, peak(resource.RUSAGE_SELF), peak(resource.RUSAGE_CHILDREN), lora.path)


def peak(who: int) -> int:
    return resource.getrusage(who).ru_maxrss >> 10


if __name__ == "__main__":
    main(*sys.argv[1:])
