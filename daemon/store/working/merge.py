"""What a new release does to a working copy, decided from three trees. Pure; a person's own words always stay."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Merge:
    """``take``: path → the new release's text, None where it has the file no more. ``edits``: what a person changed
    against it, None where they removed a file. ``conflicts``: what both have changed.
    """

    take: Mapping[str, str | None] = field(default_factory=dict)
    edits: Mapping[str, str | None] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()


def merged(
    base: Mapping[str, str], mine: Mapping[str, str], theirs: Mapping[str, str], *, unread: Collection[str] = ()
) -> Merge:
    """Path → text: the release that the working copy was made from, what lies there now, and the new release.

    ``unread`` are there, but nobody knows with what in them: neither unchanged nor removed.
    """
    take: dict[str, str | None] = {}
    edits: dict[str, str | None] = {}
    conflicts: list[str] = []
    for path in sorted(base.keys() | mine.keys() | theirs.keys()):
        was, here, new = base.get(path), mine.get(path), theirs.get(path)
        if path in unread:
            conflicts += [path] if new != was else []
        elif here == new:
            continue
        elif here == was:
            take[path] = new
        else:
            edits[path] = here
            conflicts += [path] if new != was else []
    return Merge(take, edits, tuple(conflicts))
