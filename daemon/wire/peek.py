"""The two top-level fields that routing needs, without building the rest of a body that may be megabytes."""

from typing import Any, Final

import msgspec

from daemon.core.errors import BadRequest
from daemon.wire import jsontext
from daemon.wire.base import Peek
from daemon.wire.fields import wrong

#: What a request without a model gets: the scenario's.
_DEFAULT: Final = "default"


class _Top(msgspec.Struct):
    model: Any = None
    stream: Any = None


def peek(body: bytes) -> Peek:
    """Raises BadRequest when the body is not a JSON object, or one of the two fields has another type."""
    try:
        top = jsontext.decode_as(body, _Top)
    except jsontext.NotJson as error:
        raise BadRequest(f"the body is not a JSON object: {error}") from None
    if not isinstance(top.model, str | None):
        raise wrong("model", "a string", top.model)
    if not isinstance(top.stream, bool | None):
        raise wrong("stream", "true or false", top.stream)
    return Peek(top.model or _DEFAULT, bool(top.stream))
