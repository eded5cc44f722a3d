"""What a vendor wants back with a thought, unread, so that a conversation goes on across dialects.

A seal is the vendor's name, a colon, and the vendor's own value. A client of another dialect carries it in its own
field (a signature, an encrypted content) and sends it back; only that vendor is ever sent the value again.
"""

import re
from typing import Final

from daemon.core.records import Dialect

#: Anthropic's signature of a thought, and a thought that came encrypted.
SIGNED: Final = "anthropic:"
HIDDEN: Final = "anthropic-redacted:"
#: OpenAI's: the item's id, a colon, its encrypted content.
ENCRYPTED: Final = "openai:"
#: A chat provider's plain text, which needs none.
PLAIN: Final = "chat:"
_ALL: Final = (SIGNED, HIDDEN, ENCRYPTED, PLAIN)
#: Where a client of a dialect carries other vendors' seals.
_CARRIED: Final = {
    Dialect.MESSAGES: re.compile(rb'"(?:signature|data)"\s*:\s*"(?:chat|openai):'),
    Dialect.RESPONSES: re.compile(rb'"encrypted_content"\s*:\s*"(?:chat|anthropic|anthropic-redacted):'),
}
#: Looked for first, since hardly any body has one.
_WORDS: Final = (b'"chat:', b'"openai:', b'"anthropic:', b'"anthropic-redacted:')


def read(vendor: str, value: str | None) -> str:
    """The seal in a client's field: ours if we put it there, else its own vendor's; empty when there is none."""
    if not value or value.startswith(_ALL):
        return value or ""
    return vendor + value


def foreign(dialect: Dialect, body: bytes) -> bool:
    """Whether a request carries a thought of another vendor's: the dialect's own provider would refuse all of it."""
    carried = _CARRIED.get(dialect)
    # Backwards: over a long body that is four times as fast as `in`.
    return carried is not None and any(body.rfind(word) >= 0 for word in _WORDS) and carried.search(body) is not None


def value(seal: str, vendor: str) -> str | None:
    """What to send that vendor; None when the thought is another's."""
    return seal[len(vendor) :] if seal.startswith(vendor) else None
