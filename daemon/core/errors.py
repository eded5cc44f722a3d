"""One tree of errors. Each class has a stable ``kind`` (for programs), an HTTP status and an exit code (for shells).

Raise plain exceptions inside; classify once at a boundary; render at exactly three edges: the HTTP handler, the
CLI's main, the job runner. A message says what happened, with which value; the hint is the next command to run.
"""

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What a shell sees. Stable: scripts depend on it."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    UNAUTHORISED = 4
    NOT_FOUND = 5
    STALE = 6
    GATE = 7
    INTERRUPTED = 130


class ReefError(Exception):
    """Something a person can act on."""

    kind: ClassVar[str] = "failed"
    status: ClassVar[int] = 500
    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def envelope(self) -> dict[str, object]:
        """The JSON form on every edge: ``{"error": {"kind", "message", "hint"}}``."""
        return {"error": {"kind": self.kind, "message": self.message, "hint": self.hint}}


class UsageError(ReefError):
    """A value that cannot be used: a bad flag, a malformed body, an unknown field."""

    kind, status, exit_code = "usage", 400, ExitCode.USAGE


class ConfigError(ReefError):
    """The configuration cannot be read or does not make sense."""

    kind, status, exit_code = "config", 500, ExitCode.USAGE


class NotFound(ReefError):
    """The thing named does not exist."""

    kind, status, exit_code = "not_found", 404, ExitCode.NOT_FOUND


class Checked(ReefError):
    """No failure: the answer to an installed agent's first request, which asks nothing but whether it arrives."""

    kind, status = "checked", 400


class UnknownReference(ReefError):
    """A report names a receipt that this scenario never issued (the published protocol answers 400, not 404)."""

    kind, status, exit_code = "unknown_reference", 400, ExitCode.NOT_FOUND


class Conflict(ReefError):
    """Someone else was first: an id reused with other content, a stale head."""

    kind, status, exit_code = "conflict", 409, ExitCode.STALE


class Unauthorised(ReefError):
    """No token, or one without the scope for this route."""

    kind, status, exit_code = "unauthorised", 401, ExitCode.UNAUTHORISED


class Forbidden(ReefError):
    """A foreign Host or Origin: most likely a web page, not a program of this user."""

    kind, status, exit_code = "forbidden", 403, ExitCode.UNAUTHORISED


class UnsupportedMedia(ReefError):
    """A mutation whose content type a browser could send without asking first."""

    kind, status, exit_code = "unsupported_media_type", 415, ExitCode.USAGE


class TooLarge(ReefError):
    """A body over the limit."""

    kind, status, exit_code = "too_large", 413, ExitCode.USAGE


class TooSlow(ReefError):
    """A client that began to send a body and stopped."""

    kind, status, exit_code = "request_timeout", 408, ExitCode.USAGE


class Unreachable(ReefError):
    """The daemon does not answer."""

    kind, status, exit_code = "unreachable", 503, ExitCode.UNREACHABLE


class RemoteError(ReefError):
    """A Git remote that cannot be reached, lets nobody in, or turns down what it is given."""

    kind, status = "remote", 502


class EngineError(ReefError):
    """The engine failed this request; the next one may succeed."""

    kind, status = "engine_error", 502


class EngineUnavailable(EngineError):
    """No engine can answer now: not installed, no model, still loading after the deadline, crashed twice."""

    kind, status = "engine_unavailable", 503


class UpstreamUnreachable(EngineError):
    """The provider refused the connection, timed out or broke it before the first byte."""

    kind, status = "upstream_unreachable", 502


class BrokeOff(EngineError):
    """An engine began to answer, and its answer has no end."""

    kind, status = "upstream_broke_off", 502


class ContextOverflow(EngineError):
    """The prompt does not fit the model's context. ``tokens`` and ``limit`` are counts of tokens."""

    kind, status = "context_overflow", 400

    def __init__(self, tokens: int, limit: int) -> None:
        super().__init__(f"the prompt has {tokens} tokens, the context holds {limit}")
        self.tokens = tokens
        self.limit = limit


class BadRequest(EngineError):
    """The request is well-formed JSON but asks for what the dialect or the engine cannot do."""

    kind, status, exit_code = "invalid_request", 400, ExitCode.USAGE


class NotSupported(EngineError):
    """The engine that this request goes to has no such function."""

    kind, status = "not_supported", 501


class BadWeights(EngineError):
    """A LoRA adapter that must not serve: damaged, of another base model, not finite, without effect."""

    kind, status = "bad_weights", 409


class GateRefused(ReefError):
    """The gate did not accept this candidate."""

    kind, status, exit_code = "gate", 409, ExitCode.GATE


class Untrusted(ReefError):
    """A release that is not signed by this home's key, was changed, or is older than the one before."""

    kind, status = "untrusted", 409


class RecipeError(ReefError):
    """A recipe cannot be loaded, is configured wrongly, or failed."""

    kind, status = "recipe", 422


class StoreError(ReefError):
    """The store cannot be opened, read or written (disk full, wrong owner, newer schema)."""

    kind, status = "store", 500
