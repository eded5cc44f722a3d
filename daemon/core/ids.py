"""Identifiers: sortable by time, unguessable, safe in headers, URLs and file names.

A receipt is a record's id. Inside one process order follows creation even if the wall clock steps back: the
time part never decreases.
"""

import os
import threading
import time
from typing import Final, Literal

Prefix = Literal["rec", "ses", "rep", "job", "req", "ins", "tsk", "run", "check"]
#: How the id of a run begins that only looks whether its agent reaches Reef.
CHECK: Final = "check_"

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32: no i, l, o, u
_PAIRS: Final = [high + low for high in _ALPHABET for low in _ALPHABET]
_lock = threading.Lock()
_last = 0
_noise = bytearray()


def new_id(prefix: Prefix) -> str:
    """A new id such as ``rec_06f2m8…``: 48 bits of milliseconds, 80 random bits, 26 characters (ULID's layout)."""
    global _last
    with _lock:
        _last = max(time.time_ns() // 1_000_000, _last)
        value = (_last & (1 << 48) - 1) << 80 | _random80()
    return f"{prefix}_{_base32(value)}"


def _random80() -> int:
    """Asked of the system for many ids at once: each call gives other threads a turn. Under the lock only."""
    global _noise
    if not _noise:
        _noise = bytearray(os.urandom(10 * 256))
    value = int.from_bytes(_noise[-10:])
    del _noise[-10:]
    return value


def _base32(value: int) -> str:
    return "".join([_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10)])
