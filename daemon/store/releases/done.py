"""Which release of a chain a job led to: what makes publishing a job twice the same as once.

Read from the commits' own words and remembered per chain, so that each lookup reads only what is new: a search through
all commits at every publish would make long chains slow.
"""

import re
from typing import Final

from daemon.core.errors import StoreError
from daemon.store.releases.git import Repository

_JOB: Final = re.compile(r"^Reef-Job: (\S+)$", re.MULTILINE)
_FORMAT: Final = "--format=%H %P%n%B%x00"


class Done:
    """Safe from any thread: what is remembered only grows, or is read anew."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._known: dict[str, tuple[str, dict[str, str]]] = {}

    def commit_of(self, scenario: str, tip: str, job: str) -> str | None:
        """The commit that the job led to, in the chain that ends in ``tip``. Raises StoreError."""
        before, jobs = self._known.get(scenario, ("", {}))
        if before != tip:
            jobs = self._more(before, tip, jobs)
            self._known[scenario] = tip, jobs
        return jobs.get(job)

    def _more(self, before: str, tip: str, jobs: dict[str, str]) -> dict[str, str]:
        if before:
            try:
                found, oldest = self._read(tip, f"^{before}")
            except StoreError:  # what was the head is no commit any more
                found, oldest = {}, ""
            if oldest == before:
                return jobs | found
        return self._read(tip)[0]

    def _read(self, *range: str) -> tuple[dict[str, str], str]:
        """Job → commit, and what the oldest commit read follows."""
        told = self._repository.run("log", "--first-parent", _FORMAT, *range).decode("utf-8", "replace")
        jobs: dict[str, str] = {}
        follows = ""
        for entry in told.split("\0")[:-1]:
            head, _, message = entry.lstrip("\n").partition("\n")
            commit, _, follows = head.partition(" ")
            if found := _JOB.search(message):
                jobs.setdefault(found[1], commit)
        return jobs, follows
