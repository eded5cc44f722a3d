"""Putting another model's name into a request, and nothing else: every other byte stays where it was."""

import re
from typing import Final

from daemon.core.errors import BadRequest
from daemon.wire import jsontext
from daemon.wire.peek import peek

_FIELD: Final = re.compile(rb'"model"(\s*:\s*)("(?:[^"\\]|\\.)*"|null)')
_OPENING: Final = re.compile(rb"\s*\{")
#: Messages may quote such a field; the real one is among the first.
_CANDIDATES: Final = 64


def renamed(body: bytes, model: str) -> bytes:
    """``body`` asking for ``model``. Raises BadRequest when it is no JSON object, or hides its model's name."""
    asked, wanted = peek(body), jsontext.encode(model)
    if asked.model == model:
        return body
    for number, found in enumerate(_FIELD.finditer(body)):
        if number == _CANDIDATES:
            break
        changed = body[: found.start(2)] + wanted + body[found.end(2) :]
        if peek(changed).model == model:
            return changed
    opening = _OPENING.match(body)
    if opening is not None:
        empty = not body[opening.end() :].lstrip().startswith(b'"')
        changed = body[: opening.end()] + b'"model":' + wanted + (b"" if empty else b",") + body[opening.end() :]
        if peek(changed).model == model:
            return changed
    raise BadRequest(f"the field model cannot be found to ask for {model!r}", hint="name the model as plain text")
