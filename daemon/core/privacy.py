"""What is forgotten, and the log of what was decided, as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One entry of the audit log; ``hash`` (hex) covers it and the one before."""

    seq: int
    at_ns: int
    event: str
    facts: Mapping[str, Any]
    hash: str


@dataclass(frozen=True, slots=True)
class Purge:
    """What is to be forgotten: records for which all that is given holds. ``before_ns``: of sessions whose last record
    is older; ``repository``: of sessions in that folder or below. ``sums``: those by hour and day forget them, too;
    ``pinned``: so do sessions that are pinned.
    """

    sessions: tuple[str, ...] = ()
    receipts: tuple[str, ...] = ()
    before_ns: int | None = None
    scenario: str | None = None
    repository: str | None = None
    sums: bool = True
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Purged:
    """What went, or would. ``kept_messages`` are held by other records, too. ``releases`` and ``jobs`` learned from it:
    releases stay as they are. Of the sessions that are pinned, ``pinned`` went and ``kept_pinned`` stay. ``compacted``:
    the database file was written anew.
    """

    records: int = 0
    sessions: int = 0
    reports: int = 0
    messages: int = 0
    kept_messages: int = 0
    releases: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    compacted: bool = False
    pinned: int = 0
    kept_pinned: int = 0
    #: Damaged databases that were kept aside: what they hold stays.
    aside: tuple[str, ...] = ()
