"""Whether what an installed agent asks arrives here: its first request, which no model answers and nobody records.

An agent may pass over the settings it was given and ask its vendor instead, without a word. So whoever installs one
runs it once under a run's id that begins with ``check_``, and then asks here whether that run was seen.
"""

from collections import deque
from typing import Final

from daemon.core.errors import Checked
from daemon.core.ids import CHECK
from daemon.server.identity import Identity

_KEPT: Final = 64


class Checks:
    """The last runs that were checks."""

    def __init__(self) -> None:
        self._seen: deque[str] = deque(maxlen=_KEPT)

    def arrived(self, identity: Identity) -> None:
        """Raises Checked for a request that belongs to a check."""
        run = identity.tags.get("run", "")
        if run.startswith(CHECK):
            self._seen.append(run)
            raise Checked("the request reached Reef; it was a check, and no model was asked")

    def __contains__(self, run: str) -> bool:
        return run in self._seen
