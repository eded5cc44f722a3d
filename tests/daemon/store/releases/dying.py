"""A program that changes a store of releases in processes which kill themselves in the middle of it.

A line in: home, name of a change, the step before which it dies (0: it lives), PATH. A line out: the signal that ended
it, 0 for none, -1 for an error. It forks for each: a Python that starts anew for every step takes minutes.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from daemon.core.paths import Home
from daemon.store.releases import Releases
from tests.fakes.releases import ACCEPTED, candidate

#: Files that are opened, renamed, removed, and processes (PEP 578).
STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "os.utime", "fcntl.flock", "subprocess.Popen"}


def publish(releases: Releases) -> None:
    for row in releases.waiting():
        releases.publish(row, row.parent)


def propose(releases: Releases) -> None:
    weights = releases.path.with_name("w")
    releases.propose(candidate("job_4", releases.standing("default").id, weights=weights), ACCEPTED)


def roll_back(releases: Releases) -> None:
    if releases.standing("default").id.startswith("r2-"):
        releases.rollback("default", "r1", pin=True)


def reject(releases: Releases) -> None:
    for row in releases.waiting():
        releases.reject("default", row.id)


CHANGES: dict[str, Callable[[Releases], object]] = {
    "publish": publish,
    "rollback": roll_back,
    "reject": reject,
    "archive": lambda releases: releases.archive("default"),
    "propose": propose,
    "gc": lambda releases: releases.gc(0),
}


def main() -> None:
    for line in sys.stdin:
        root, name, at, path = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            os.environ["PATH"] = path
            change(Home(Path(root)), name, int(at))
        _, status = os.waitpid(child, 0)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status), flush=True)


def change(home: Home, name: str, at: int) -> None:
    left = at

    def step(event: str, _: object) -> None:
        nonlocal left
        if event in STEPS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        releases = Releases.open(home)
        sys.addaudithook(step)
        CHANGES[name](releases)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
