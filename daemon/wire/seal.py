"""What a vendor wants back with a thought, unread, so that a conversation goes on across dialects.

A seal is the vendor's name, a colon, and the vendor's own value. A client of another dialect carries it in its own
field (a signature, an encrypted content) and sends it back; only that vendor is ever sent the value again.
"""

from typing import Final

#: Anthropic's signature of a thought, and a thought that came encrypted.
SIGNED: Final = "anthropic:"
HIDDEN: Final = "anthropic-redacted:"
#: OpenAI's: the item's id, a colon, its encrypted content.
ENCRYPTED: Final = "openai:"
#: A chat provider's plain text, which needs none.
PLAIN: Final = "chat:"
_ALL: Final = (SIGNED, HIDDEN, ENCRYPTED, PLAIN)


def read(vendor: str, value: str | None) -> str:
    """The seal in a client's field: ours if we put it there, else its own vendor's; empty when there is none."""
    if not value or value.startswith(_ALL):
        return value or ""
    return vendor + value


def value(seal: str, vendor: str) -> str | None:
    """What to send that vendor; None when the thought is another's."""
    return seal[len(vendor) :] if seal.startswith(vendor) else None
