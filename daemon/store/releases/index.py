"""A chain walked once: which release a job led to, or a candidate became, which commit has a number.

The first makes publishing a job twice the same as once, the others make every page and card of a long chain cost the
same. Read from the commits' own words and remembered per chain, so that each lookup reads only what is new; nothing
here is proved, who asks proves the commit.
"""

import re
from typing import Final, NamedTuple

from daemon.core.errors import StoreError
from daemon.store.releases.git import Repository

_JOB: Final = re.compile(r"^Reef-Job: (\S+)$", re.MULTILINE)
#: Of a release's id, what its candidate's ended in too.
_MARK: Final = re.compile(r"^Reef-Release: r[0-9]+-([0-9a-f]{8})$", re.MULTILINE)
_FORMAT: Final = "--format=%H %P%n%B%x00"


class _Walked(NamedTuple):
    """``links``: all commits, the oldest first; ``jobs``: job → commit; ``marks``: end of an id → commit."""

    links: list[str]
    jobs: dict[str, str]
    marks: dict[str, str]


class Index:
    """Safe from any thread: what is remembered only grows, or is read anew."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._known: dict[str, _Walked] = {}

    def commit_of(self, scenario: str, tip: str, job: str) -> str | None:
        """The commit that the job led to, in the chain that ends in ``tip``. Raises StoreError."""
        return self._walked(scenario, tip).jobs.get(job)

    def marked(self, scenario: str, tip: str, mark: str) -> str | None:
        """The commit whose release's id ends in ``mark``, in the chain that ends in ``tip``. Raises StoreError."""
        return self._walked(scenario, tip).marks.get(mark)

    def links(self, scenario: str, tip: str) -> list[str]:
        """The commits of the chain that ends in ``tip``, the oldest first. Raises StoreError."""
        return self._walked(scenario, tip).links

    def _walked(self, scenario: str, tip: str) -> _Walked:
        known = self._known.get(scenario)
        if known is None or known.links[-1] != tip:
            known = self._known[scenario] = self._more(known, tip)
        return known

    def _more(self, known: _Walked | None, tip: str) -> _Walked:
        if known is not None:
            before = known.links[-1]
            try:
                found, follows = self._read(tip, f"^{before}")
            except StoreError:  # what was the head is no commit any more
                follows = ""
            if follows == before:
                return _Walked(known.links + found.links, known.jobs | found.jobs, known.marks | found.marks)
        return self._read(tip)[0]

    def _read(self, *range: str) -> tuple[_Walked, str]:
        """What is there, and what the oldest commit of it follows."""
        told = self._repository.run("log", "--first-parent", "--reverse", _FORMAT, *range).decode("utf-8", "replace")
        found, first = _Walked([], {}, {}), ""
        for entry in told.split("\0")[:-1]:
            head, _, message = entry.lstrip("\n").partition("\n")
            commit, _, follows = head.partition(" ")
            if not found.links:
                first = follows
            found.links.append(commit)
            if job := _JOB.search(message):
                found.jobs[job[1]] = commit
            if mark := _MARK.search(message):
                found.marks[mark[1]] = commit
        return found, first
