"""Whether the tree that an agent worked on differed from its commit; NULL where nobody knows."""

from typing import Final

STATEMENTS: Final = ("ALTER TABLE request ADD COLUMN git_dirty INTEGER",)
