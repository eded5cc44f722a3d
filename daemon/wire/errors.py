"""What errors are called on the wire, and the words for the one that agents act on: a prompt too long."""

import re
from typing import Final

from daemon.wire import jsontext

#: Of an error page.
_WORDS: Final = 500
#: How providers say that a prompt is too long; two of the numbers are the prompt's and the context's.
_TOO_LONG: Final = re.compile(
    r"(?i)prompt is too long|context[ _](?:length|window|size)|maximum context|too many (?:input )?tokens"
)
_NUMBERS: Final = re.compile(r"(?<![\w.-])\d[\d,]{2,}(?![\w-])")
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


def openai_error(status: int, kind: str, message: str) -> bytes:
    """The JSON error of OpenAI's routes."""
    name, code = CHAT_TYPES.get(status, "server_error"), kind
    if counts := overflow(kind, message):
        code, message = "context_length_exceeded", _too_long(counts)
    error = {"message": jsontext.encodable(message), "type": name, "param": None, "code": code}
    return jsontext.encode({"error": error})


def anthropic_error(status: int, kind: str, message: str) -> dict[str, object]:
    """The JSON error of Anthropic's routes."""
    if counts := overflow(kind, message):
        message = f"prompt is too long: {counts[0]} tokens > {counts[1]} maximum"
    name = MESSAGES_TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": name, "message": jsontext.encodable(message)}, "request_id": None}


def responses_error(status: int, kind: str, message: str) -> dict[str, str]:
    """The error inside a response that failed. Codex acts on the code."""
    if counts := overflow(kind, message):
        return {"code": "context_length_exceeded", "message": _too_long(counts)}
    codes = {429: "rate_limit_exceeded", 503: "server_is_overloaded", 529: "server_is_overloaded"}
    code = codes.get(status, "invalid_prompt" if status == 400 else "server_error")
    return {"code": code, "message": jsontext.encodable(message)}


def _too_long(counts: tuple[int, int]) -> str:
    return (
        f"This model's maximum context length is {counts[1]} tokens. However, your messages resulted in "
        f"{counts[0]} tokens. Please reduce the length of the messages."
    )


def provider_error(said: str) -> tuple[str, str]:
    """(kind, message) of a provider's error for a client of another dialect: a prompt too long is told as ours are."""
    numbers = [int(one.replace(",", "")) for one in _NUMBERS.findall(said)]
    if not _TOO_LONG.search(said) or not numbers:
        return "upstream_error", said
    limit = min(numbers)
    return "context_overflow", f"the prompt has {max(*numbers, limit + 1)} tokens, the context holds {limit}"


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
