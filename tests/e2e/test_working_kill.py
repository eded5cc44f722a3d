"""A daemon killed at any moment while a person edits and releases come: no edit is lost, and one proposal is left."""

import hashlib
import random
import threading
import time

import pytest

from daemon.core.paths import Home
from daemon.core.releases import ReleaseState
from daemon.store.releases import Releases
from tests.fakes import chain
from tests.fakes.daemon import running_daemon, until

pytestmark = pytest.mark.slow

ROUNDS = 12
OWN = {"rules.md", "prompts/own.md"}


def test_no_edit_is_lost_and_no_release_either(reef_home: Home) -> None:
    chain.publish(reef_home)
    root, chance = reef_home.harness / "default", random.Random(3)
    with running_daemon(reef_home) as daemon:
        assert daemon.control("POST", "/reef/harness/working", {})[0] == 200
    saved: list[str] = []
    (root / "prompts" / "own.md").write_text("Own.\n")
    for number in range(ROUNDS):
        over = threading.Event()

        def edit(over: threading.Event = over) -> None:
            while not over.wait(0.02):
                saved.append(f"Edit {len(saved)}.\n")
                (root / "rules.md").write_text(saved[-1])

        with running_daemon(reef_home) as daemon:
            person = threading.Thread(target=edit)
            person.start()
            chain.publish(reef_home, f"round_{number}", {"prompts/sum.md": f"Sum {number}.\n"})
            time.sleep(chance.uniform(0.0, 1.5))  # the moment is what is tried
            daemon.kill()
            over.set()
            person.join()
    store = Releases.open(reef_home)
    digest = hashlib.sha256(saved[-1].encode()).hexdigest()
    with running_daemon(reef_home) as daemon:

        def settled() -> bool:
            rows, _ = store.list("default", states=frozenset({ReleaseState.PENDING}))
            return len(rows) == 1 and rows[0].files["harness/rules.md"] == digest

        until(settled, "one proposal, with what was saved last")
        (looked,) = daemon.get("/reef/harness/working")["items"]
        head = store.head("default")
        assert head is not None
        assert (looked["base"], looked["conflicts"], looked["problems"]) == (head.id, {}, [])
        assert {edit["path"] for edit in looked["edits"]} == OWN
    left = {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}
    assert left == store.files(head) | {"rules.md": saved[-1], "prompts/own.md": "Own.\n"}
    assert head.number == ROUNDS + 1
