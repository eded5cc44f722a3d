"""Text without blanks is indexed by pairs of letters (`daemon.store.unspaced`): the index is filled anew."""

from typing import Final

STATEMENTS: Final = (
    "INSERT INTO words (words) VALUES ('delete-all')",
    "UPDATE tally SET indexed = 0",
)
