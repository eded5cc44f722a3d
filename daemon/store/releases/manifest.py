"""``release.json``: a release as the bytes that get signed.

Canonical JSON (sorted keys, no spaces, UTF-8), so that the same release is the same bytes everywhere. What it leaves
out (`Release.state`, ``commit``, ``head``, ``note``) is not vouched for. Reading is strict: whatever is not a release
of this format is untrusted, never half understood.
"""

import json
import re
from dataclasses import asdict
from typing import Final

import msgspec

from daemon.core.errors import RecipeError, Untrusted
from daemon.core.releases import Release

PATH: Final = "release.json"
SIGNATURE_PATH: Final = "release.json.sig"
_FORMAT: Final = 1
_OUTSIDE: Final = ("state", "commit", "head", "note")
_ID: Final = re.compile(r"r(\d{1,9})-[0-9a-f]{8}")
_NUMBER: Final = re.compile(r"r([1-9]\d{0,8})")


def dump(release: Release) -> bytes:
    """Raises RecipeError for settings that JSON cannot hold."""
    content = {key: value for key, value in asdict(release).items() if key not in _OUTSIDE}
    try:
        text = json.dumps(
            {"format": _FORMAT, **content}, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise RecipeError(f"release {release.id} cannot be written as JSON: {error}") from error


def load(raw: bytes) -> Release:
    """The release that signed bytes say. Raises Untrusted."""
    try:
        form = msgspec.json.decode(raw).get("format")
        release = msgspec.json.decode(raw, type=Release)
    except (msgspec.MsgspecError, AttributeError, RecursionError) as error:
        raise Untrusted(f"release.json is not a release: {error}") from error
    if form != _FORMAT:
        raise Untrusted(f"release.json has format {form!r}, this version reads {_FORMAT}", hint="update Reef")
    found = _ID.fullmatch(release.id)
    if found is None or int(found[1]) != release.number:
        raise Untrusted(f"release.json calls itself {release.id!r}, number {release.number}")
    return release


def number_of(id: str) -> int | None:
    """The number in a release's id (0: a candidate's), or alone; None for what is no id, ``base`` too."""
    found = _ID.fullmatch(id) or _NUMBER.fullmatch(id)
    return int(found[1]) if found else None
