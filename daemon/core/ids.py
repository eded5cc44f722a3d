"""Identifiers: sortable by time, unguessable, safe in headers, URLs and file names.

A receipt is a record's id. Inside one process order follows creation even if the wall clock steps back: the
time part never decreases.
"""

import secrets
import threading
import time
from typing import Final, Literal

Prefix = Literal["rec", "ses", "rep", "job", "req", "ins", "tsk", "run"]

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32: no i, l, o, u
_PAIRS: Final = [high + low for high in _ALPHABET for low in _ALPHABET]
_lock = threading.Lock()
_last = 0


def new_id(prefix: Prefix) -> str:
    """A new id such as ``rec_06f2m8…``: 48 bits of milliseconds, 80 random bits, 26 characters (ULID's layout)."""
    global _last
    with _lock:
        _last = max(time.time_ns() // 1_000_000, _last)
        value = (_last & (1 << 48) - 1) << 80 | secrets.randbits(80)
    return f"{prefix}_{_base32(value)}"


def _base32(value: int) -> str:
    return "".join([_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10)])
