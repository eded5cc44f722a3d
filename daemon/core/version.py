"""The version of the package and of the protocol between the CLI and the daemon."""

from typing import Final

__version__: Final = "0.1.0"

#: Bumped when an older CLI can no longer talk to a newer daemon, or the reverse. The handshake compares both.
PROTOCOL: Final = 1
