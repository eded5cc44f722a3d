"""A program that stores records and says on stdout which ones are acknowledged, until it is killed.

python -m tests.daemon.store.crash PATH NAME
"""

import itertools
import sys
from concurrent.futures import Future
from pathlib import Path

from daemon.core.records import Appended
from daemon.store.db import Store
from tests.fakes.exchanges import assistant, submit, system, transcript, user


def main(path: str, name: str) -> None:
    store = Store.open(Path(path))
    print("ready", flush=True)
    said = [system(name)]
    waiting: list[Future[Appended]] = []
    for number in itertools.count():
        said = [*said[:40], user(f"{name}/{number}")]
        waiting.append(submit(store, transcript(said, f"answer {number}")))
        said.append(assistant(f"answer {number}"))
        if len(waiting) == 8:
            for future in waiting:
                print(future.result().receipt, flush=True)
            waiting.clear()


if __name__ == "__main__":
    main(*sys.argv[1:])
