"""Spans of time and moments as a person writes them: ``90s``, ``10m``, ``2h``, ``30d``, ``2026-01-31``."""

import re
import time
from typing import Final

from daemon.core.errors import UsageError

_SPAN: Final = re.compile(r"(\d{1,9})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def span(text: str) -> int | None:
    """Seconds; None for what is no span."""
    found = _SPAN.fullmatch(text)
    return int(found[1]) * _SECONDS[found[2]] if found else None


def seconds(text: str, flag: str) -> int:
    """Seconds of a span above 0. Raises UsageError naming the flag."""
    found = span(text)
    if not found:
        raise UsageError(f"{flag} {text!r} is no span of time", hint="for example 30s, 10m, 2h or 1d")
    return found


def moment_ns(text: str, flag: str) -> int:
    """A moment in ns: so long ago, or a date of this machine's calendar. Raises UsageError naming the flag."""
    ago = span(text)
    if ago is not None:
        return time.time_ns() - ago * 1_000_000_000
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"):
        try:
            return int(time.mktime(time.strptime(text, form))) * 1_000_000_000
        except (ValueError, OverflowError):
            continue
    raise UsageError(f"{flag} {text!r} is no moment", hint="for example 30d (ago) or 2026-01-31")
