"""What an address says in the place of headers, for agents that can set only a base URL.

``/t/<token>/v1/…`` carries the token, ``/t/<token>/x/<fields>/v1/…`` also what a wrapper knows of the run: base64url of
a JSON object of ``x-reef-…`` headers, see `reef_cli.wrapped`. A header that is there counts more.
"""

import base64
import binascii
from typing import Final

from starlette.types import Scope

from daemon.core.errors import UsageError
from daemon.wire import jsontext

_FIELDS: Final = "x/"
_ALLOWED: Final = ("x-reef-adapter", "x-reef-scenario", "x-reef-cwd", "x-reef-commit")
_TAG: Final = "x-reef-tag-"
_MOST: Final = 32


def take_token(scope: Scope) -> str | None:
    """Take token and fields out of the path; the token, or None. Raises UsageError for fields that are none."""
    path: str = scope["path"]
    if not path.startswith("/t/"):
        return None
    token, _, rest = path[3:].partition("/")
    raw: bytes = scope["raw_path"][3:].partition(b"/")[2]
    if rest.startswith(_FIELDS):
        told, _, rest = rest.removeprefix(_FIELDS).partition("/")
        raw = raw[len(_FIELDS) :].partition(b"/")[2]
        there = {name for name, _ in scope["headers"]}
        scope["headers"] = [*scope["headers"], *(pair for pair in _headers(told) if pair[0] not in there)]
    scope["path"] = f"/{rest}"
    scope["raw_path"] = b"/" + raw
    return token


def _headers(told: str) -> list[tuple[bytes, bytes]]:
    try:
        said = jsontext.decode(base64.urlsafe_b64decode(told + "=" * (-len(told) % 4)))
    except (binascii.Error, ValueError, jsontext.NotJson):
        said = None
    good = isinstance(said, dict) and len(said) <= _MOST and all(_good(*pair) for pair in said.items())
    if not good:
        raise UsageError(f"/x/{told[:40]} in the address says nothing", hint="reef harness install writes it anew")
    return [(name.encode(), value.encode()) for name, value in said.items()]


def _good(name: object, value: object) -> bool:
    named = isinstance(name, str) and (name in _ALLOWED or name.startswith(_TAG))
    return named and isinstance(value, str) and f"{name}{value}".isascii() and f"{name}{value}".isprintable()
