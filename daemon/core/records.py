"""The words of the system as data: what was asked, what was answered, what was recorded.

Neutral between dialects: `daemon.wire` turns bytes into these and back, engines answer them, the store keeps them.
Frozen: a record is what happened, and nothing changes it afterwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal


class Dialect(StrEnum):
    """A wire protocol of inference, chosen by the route."""

    CHAT = "chat"  # POST /v1/chat/completions
    MESSAGES = "messages"  # POST /v1/messages
    RESPONSES = "responses"  # POST /v1/responses
    OTHER = "other"  # whatever else is below /v1: passed through, never translated


class Kind(StrEnum):
    """What a record is to its session. Only main and subagent turns can train."""

    MAIN = "main"
    SUBAGENT = "subagent"
    SIDE = "side"
    RETRY = "retry"


class End(StrEnum):
    """How an exchange ended."""

    OK = "ok"
    ERROR = "error"  # the engine or provider answered with an error
    INCOMPLETE = "incomplete"  # the engine or provider broke off
    CANCELLED = "cancelled"  # the client left


# -- a conversation, whatever its dialect -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """``seal``: what the vendor wants back with it, unread; see `daemon.wire.seal`."""

    text: str
    seal: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """An image is named: media type and the sha256 or URL of what was sent. ``url`` is what another provider can be
    sent, inline (``data:``) or a link; it is never stored or shown.
    """

    media_type: str
    source: str
    url: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call. ``arguments`` is the JSON text as the model wrote it; it may be invalid JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """``content`` is all of it as text, images by name; ``images`` are those, for engines that can be sent them."""

    id: str
    content: str
    is_error: bool = False
    images: tuple[Image, ...] = field(default=(), compare=False, repr=False)


Part = Text | Thinking | Image | ToolUse | ToolResult
Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer; ``schema`` is the JSON schema of its arguments.

    ``custom``: the client takes free text, which is the one argument ``input`` here. ``namespace``: what ``name``
    begins with, two underscores after it, where the client keeps both apart.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    strict: bool = False
    custom: bool = False
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class ToolChoice:
    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """None means the engine's default. ``max_tokens`` None: until the context is full."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logprobs: bool = False
    top_logprobs: int = 0


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request for an engine of ours."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    #: Whether an answer may have several calls; None: nothing was said, so it may.
    parallel_tool_calls: bool | None = None
    sampling: Sampling = Sampling()
    stream: bool = False
    include_usage: bool = False
    #: JSON schema the whole answer must satisfy; ``{}`` for any JSON object; None for free text.
    response_schema: Mapping[str, Any] | None = None
    #: How hard to think, in the vendors' words from ``none`` to ``max``; None: as hard as the model likes.
    effort: str | None = None
    #: Names the conversation for a provider's prompt cache.
    cache_key: str | None = None


# -- what was measured of an answer -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts of tokens. ``cached`` is the part of ``prompt`` that was not read again, ``written`` the part that the
    provider keeps for that. ``cost`` is in US dollars; None: unknown.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    written: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """Token-native capture of one answer: ids, natural-log probabilities (untempered) and the weights that made them.

    Shapes: ``prompt_ids`` [P], ``completion_ids`` [C], ``logprobs`` [C]. ``weights`` is the model's sha256, then, with
    a LoRA adapter, ``+`` and the adapter's sha256.
    """

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    weights: str


# -- what is recorded -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message as the store keeps it: the exact (redacted) bytes once, under their hash.

    ``key`` (16 bytes) hashes the canonical form: what stays equal when an agent sends the message again (DESIGN §5).
    """

    raw: bytes
    key: bytes
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """A parsed exchange. ``head + separator.join(raws) + tail`` is the (redacted) request body, byte for byte.

    When a body cannot be split so, ``head`` holds all of it and ``messages`` is empty. ``root`` (16 bytes) hashes what
    stands before the messages (Anthropic's ``system``). ``response`` is the (redacted) response body, or empty where
    redaction could not be done inside a stream; ``answer`` is what the response amounts to.
    """

    head: bytes
    separator: bytes
    tail: bytes
    messages: tuple[StoredMessage, ...]
    root: bytes
    answer: StoredMessage | None
    response: bytes
    #: How the system prompt begins that stands before the messages.
    system: str = ""
    tools: int = 0
    usage: Usage = Usage()
    stop_reason: str | None = None
    model: str | None = None
    redacted: int = 0
    #: Parsing trouble worth telling (`wire` never raises on an agent's odd bytes).
    note: str | None = None
    #: Ids that the request's body has for its conversation, strongest first.
    keys: tuple[str, ...] = ()
    #: The id of the answer that the request goes on from, and the one that its own answer has.
    previous: str | None = None
    answer_id: str | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the proxy saw of one exchange. ``started_ns`` is wall clock; durations come from a monotonic clock."""

    receipt: str
    scenario: str
    dialect: Dialect
    path: str
    started_ns: int
    duration_us: int
    first_byte_us: int | None
    request: bytes
    response: bytes
    stream: bool
    status: int
    end: End
    engine: str
    model_asked: str
    release_id: str
    error: str | None = None
    weights: str | None = None
    span: TokenSpan | None = None
    agent: str | None = None
    #: Ids that the agent or its wrapper sent for the conversation, strongest first; empty when none.
    session_keys: tuple[str, ...] = ()
    subagent: str | None = None
    #: The sub-agent that started this one; None where the main line did.
    spawner: str | None = None
    #: Its headers say that it is no turn of the conversation.
    side: bool = False
    cwd: str | None = None
    commit: str | None = None
    #: Whether the tree differed from that commit; None: nobody knows.
    dirty: bool | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    #: W3C trace context that came along; for spans only, not stored.
    traceparent: str | None = None
    #: Why it is not to be recorded (`daemon.server.privacy`), as its receipt says; None where it is.
    unrecorded: str | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a committed exchange went, and what its parsing found."""

    receipt: str
    session: str
    kind: Kind
    seq: int
    usage: Usage = Usage()
    model: str | None = None
    stop_reason: str | None = None
    agent: str | None = None
    #: That it is counted for, see `daemon.store.carried`.
    release_id: str = ""
