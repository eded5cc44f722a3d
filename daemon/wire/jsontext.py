"""JSON as it really comes: half an emoji escaped alone, two objects in a row, control characters inside strings.

Everything that is read here can be written again: no lone surrogate ever comes out.
"""

import json
import re
from typing import Any, Final

import msgspec

#: An escaped backslash, a surrogate pair, or (group 1) half of one. JavaScript writes halves when it cuts a text.
_SURROGATES: Final = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


class NotJson(ValueError):
    """The bytes are not JSON; the message says where."""


def masked(data: bytes) -> bytes:
    """``data`` with lone surrogate escapes replaced by ``\\ufffd``: same length, so that offsets stay."""
    return _SURROGATES.sub(lambda found: b"\\ufffd" if found[1] else found[0], data)


def decode(data: bytes | str) -> Any:
    """Any JSON value. Raises NotJson."""
    return decode_as(data, Any)


def decode_as(data: bytes | str, kind: Any) -> Any:
    """JSON as a msgspec type. Raises NotJson. A ``msgspec.Raw`` inside points into ``data`` or its masked copy."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
        again = masked(raw)
        if again == raw:
            raise NotJson(str(error)) from None
    try:
        return msgspec.json.decode(again, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise NotJson(str(error)) from None


def encode(value: object) -> bytes:
    """Compact JSON."""
    return msgspec.json.encode(value)


def text(value: object) -> str:
    """Compact JSON as text."""
    return encode(value).decode()


def encodable(value: str) -> str:
    """``value`` with lone surrogates replaced, so that it can be written."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def arguments(written: str) -> dict[str, Any] | None:
    """Tool arguments as an object, or None when the model's text is not one.

    Tolerates raw control characters inside strings, and several objects in a row of which the last counts (providers
    that send ``{}`` first). Empty text is an empty object.
    """
    if not written.strip():
        return {}
    try:
        value = decode(written)
    except NotJson:
        value = _last_object(written)
    return value if isinstance(value, dict) else None


def _last_object(written: str) -> Any:
    reader = json.JSONDecoder(strict=False)
    value: Any = None
    clean = masked(written.encode("utf-8", "replace")).decode()
    position = 0
    try:
        while position < len(clean):
            if clean[position].isspace():
                position += 1
            else:
                value, position = reader.raw_decode(clean, position)
    except (ValueError, RecursionError):
        return None
    return value
