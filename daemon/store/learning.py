"""The store's face for learning: jobs, claims, instructions and the experience that may be learned from.

As in `daemon.store.db`: writes return futures that resolve after COMMIT, reads may come from any thread.
"""

import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from daemon.core.learning import Feedback, Instruction, JobRow
from daemon.store import experience, instructions, jobs, search
from daemon.store.connection import Pool
from daemon.store.experience import Raw, Wanted
from daemon.store.instructions import NewInstruction
from daemon.store.jobs import Claim, NewJob, Stand
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

    def job(self, id: str) -> JobRow:
        """Raises NotFound."""
        return self._pool.read(jobs.job, id)

    def jobs(
        self, *, scenario: str | None = None, limit: int = 50, before: str | None = None
    ) -> tuple[list[JobRow], str | None]:
        """Newest first, with the cursor of the next page."""
        return self._pool.read(jobs.jobs, scenario, limit, before)

    def open_jobs(self) -> list[JobRow]:
        """Queued and running ones, oldest first."""
        return self._pool.read(jobs.open_jobs)

    def stand(self, id: str) -> Stand:
        return self._pool.read(jobs.stand, id)

    def claimed(self, id: str) -> Claim:
        return self._pool.read(jobs.claimed, id)

    def page(self, wanted: Wanted, keep: Callable[[str], bool]) -> tuple[list[Raw], int | None]:
        """Exchanges that may train, by seq, with the next page's ``after``; ``keep`` decides by the session's id."""
        return self._pool.read(experience.page, wanted, keep)

    def notes(self, scenario: str, recipe: str, job: str | None = None) -> list[Feedback]:
        return self._pool.read(experience.notes, scenario, recipe, job)

    def instructions(self, scenario: str, recipe: str, job: str | None = None) -> list[Instruction]:
        return self._pool.read(instructions.instructions, scenario, recipe, job)

    def news(self, wanted: Wanted, keep: Callable[[str], bool]) -> int:
        """How many units have come since the recipe's last job in the scenario, counted up to ``wanted.limit``."""
        with self._pool.reader() as reader:
            seq, report = jobs.seen(reader, wanted.scenario, wanted.recipe)
            return experience.units(reader, replace(wanted, after=seq), report, keep)

    def added(self, words: Sequence[str], limit: int) -> list[tuple[str, bytes]]:
        """Dialect and bytes of messages that came with the newest records that hold all the words."""
        return self._pool.read(search.added, words, limit)

    def unheeded(self) -> list[tuple[str, str]]:
        """(scenario, recipe) of instructions that no job was started for."""
        return self._pool.read(instructions.unheeded)

    def scenarios(self) -> list[str]:
        return self._pool.read(experience.scenarios)
