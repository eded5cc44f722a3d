"""The store's face for learning: jobs, claims, instructions and the experience that may be learned from.

As in `daemon.store.db`: writes return futures that resolve after COMMIT, reads may come from any thread.
"""

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from daemon.core.learning import Instruction, JobRow
from daemon.store import experience, instructions, jobs, search
from daemon.store.connection import Pool, reading
from daemon.store.experience import Wanted
from daemon.store.instructions import NewInstruction
from daemon.store.jobs import Claim, NewJob
from daemon.store.names import Names
from daemon.store.preparing import Redact

Submit = Callable[[Callable[[sqlite3.Connection], Any]], "Future[Any]"]


class Learning:
    """``submit`` runs a function in the writer's transaction; ``names`` are the writer's own."""

    def __init__(self, pool: Pool, submit: Submit, names: Names, redact: Redact) -> None:
        self._pool = pool
        self._submit = submit
        self._names = names
        self._redact = redact

    # -- writing ------------------------------------------------------------------------------------

    def create(self, new: NewJob) -> "Future[JobRow]":
        return self._submit(lambda db: jobs.create(db, self._names, new))

    def change(self, id: str, **changes: object) -> "Future[JobRow]":
        """Set columns of a job. Fails with NotFound, and Conflict for a job that is over."""
        return self._submit(lambda db: jobs.change(db, self._names, id, changes))

    def claim(self, id: str, wanted: Claim) -> "Future[JobRow]":
        """All or nothing. Fails with NotFound, UsageError or Conflict."""
        return self._submit(lambda db: jobs.claim(db, self._names, id, wanted))

    def instruct(self, new: NewInstruction) -> "Future[tuple[Instruction, bool]]":
        """Store an instruction; the bool says whether it is new. Fails with Conflict."""
        return self._submit(lambda db: instructions.instruct(db, self._names, new, self._redact))

    # -- reading ------------------------------------------------------------------------------------

    # Each as its function says; the one that hides a module's name comes last.
    job = reading(jobs.job)
    open_jobs = reading(jobs.open_jobs)
    stand = reading(jobs.stand)
    claimed = reading(jobs.claimed)
    page = reading(experience.page)
    notes = reading(experience.notes)
    scenarios = reading(experience.scenarios)
    unheeded = reading(instructions.unheeded)
    added = reading(search.added)
    jobs = reading(jobs.jobs)
    instructions = reading(instructions.instructions)

    def news(self, wanted: Wanted, keep: Callable[[str], bool]) -> int:
        """How many units have come since the recipe's last job in the scenario, counted up to ``wanted.limit``."""
        with self._pool.reader() as reader:
            seq, report = jobs.seen(reader, wanted.scenario, wanted.recipe)
            return experience.units(reader, replace(wanted, after=seq), report, keep)
