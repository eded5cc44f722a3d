"""What errors are called on the wire, and the words for the one that agents act on: a prompt too long."""

import re
from typing import Final

from daemon.wire import jsontext

#: Of an error page.
_WORDS: Final = 500
_COUNTS: Final = re.compile(r"(\d+)\D+(\d+)")

#: Anthropic's error types by status (docs: API errors). 529 is theirs for "overloaded"; our 503 means the same.
MESSAGES_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}

CHAT_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
}


def overflow(kind: str, message: str) -> tuple[int, int] | None:
    """(tokens, limit) of a context overflow, from the two counts in ContextOverflow's message; None for others."""
    found = _COUNTS.search(message) if kind == "context_overflow" else None
    return (int(found[1]), int(found[2])) if found else None


def error_message(body: bytes) -> str:
    """What a provider's error says, whatever its shape: ``error.message``, ``message``, ``detail``, or its text."""
    try:
        said = jsontext.decode(body)
    except jsontext.NotJson:
        said = None
    inner = said.get("error") if isinstance(said, dict) else None
    for place, field in ((inner, "message"), (said, "message"), (said, "detail")):
        if isinstance(place, dict) and isinstance(place.get(field), str):
            return str(place[field])
    return inner if isinstance(inner, str) else body[:_WORDS].decode("utf-8", "replace")
