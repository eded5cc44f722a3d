"""``python purging.py PATH``: fills a store, says so, and forgets most of it; to be killed on the way."""

import sys
from pathlib import Path

from daemon.core.privacy import Purge
from daemon.store.db import Store
from tests.fakes.exchanges import Conversation

SESSIONS = 120


def main() -> None:
    store = Store.open(Path(sys.argv[1]), durability="normal")
    named = []
    for number in range(SESSIONS):
        talk = Conversation(store)
        talk.turn(f"begin {number} " + "words that make a dictionary worth it " * 12)
        named.append(talk.turn(f"go on {number}").session)
    print("ready", flush=True)
    store.purges.run(Purge(sessions=tuple(named[: SESSIONS - 20])), lambda *_: None)
    print("done", flush=True)


if __name__ == "__main__":
    main()
