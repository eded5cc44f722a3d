"""The CLI's connection to the daemon; what it is lies in `daemon.core.client`, since jobs use it too."""

from daemon.core.client import TIMEOUT, Client, error_from, segment, told_error

__all__ = ["TIMEOUT", "Client", "error_from", "segment", "told_error"]
