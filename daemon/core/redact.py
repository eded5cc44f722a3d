"""Secrets out of bytes, before disk, search index and training.

High-specificity patterns (keys with a known shape) anywhere; anything that merely looks random only right behind a key
word, so signatures, hashes, ids and images stay whole. The same secret gets the same mark, so that a person can see
that it is the same. JSON stays JSON: a match never crosses a quote or half an escape, a mark has neither.

How it is fast: nearly every secret holds a long unbroken run of letters and digits. One ``translate`` turns the data
into a map of such characters, in which ``find`` skips from run to run; only runs, and a few rare literals, are looked
at. Time is linear in the data: every look around a run is bounded.
"""

import hmac
import re
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from daemon.core.shapes import PREFIXES, SENDGRID, SHAPES

_Match = tuple[int, int, str]

#: What keys are made of. No ``/`` and ``+``: base64 has them, but so have paths, and those are everywhere.
_RUN_BYTES: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_RUN_MAP: Final = bytes(1 if byte in _RUN_BYTES else 0 for byte in range(256))
#: Shortest run looked at.
_RUN: Final = b"\1" * 16
#: From here on base64 is an image, a signature or an archive, not a key.
_BASE64_MAP: Final = bytes(1 if byte in _RUN_BYTES + b"/+" else 0 for byte in range(256))
_BLOB: Final = b"\1" * 1024
#: How long base64 may be to be looked into, and what decodes to text begins with.
_ENCODED_LEAST: Final = 24
_ENCODED_MOST: Final = 64 << 10
_TEXT_BYTES: Final = bytes(range(32, 127)) + b"\t\n\r"
_DISTINCT: Final = 10
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAME_BYTES: Final = _LETTERS + b"._-/:|?"
#: Pieces of base64 between a key word and its value's long run.
_PIECES: Final = 8

#: What may stand right before a value, but for quotes and blanks: an assignment or an authorization scheme.
_ASSIGNED: Final = (b"=", b":", b">")
_SCHEMES: Final = (b"bearer", b"basic")
#: What may stand between a name and its value.
_AROUND: Final = b" \t\"'\\=:>"
#: Long enough for most names, short enough to be the same in all events of a stream.
_NEAR: Final = 24
#: A run that came so often is in all events of a stream: the rest of them is taken out of the map, for two such runs.
_OFTEN: Final = 4
#: How a name ends whose value is a secret if it looks random, and how one ends whose value is not.
_KEY_WORDS: Final = (
    b"secret", b"token", b"password", b"passwd", b"passphrase", b"credential", b"authorization", b"auth", b"apikey",
    b"api-key", b"accesskey", b"access-key", b"accountkey", b"privatekey", b"private-key", b"secretkey", b"_key",
)  # fmt: skip
_NO_SECRETS: Final = (
    b"cache_key", b"idempotency_key", b"public_key", b"primary_key", b"foreign_key", b"sort_key", b"partition_key",
)  # fmt: skip
_VALUE: Final = re.compile(rb"[A-Za-z0-9_+/.~-]{16,4096}={0,2}")
_SECRET: Final = re.compile(
    rb"secret[A-Za-z0-9_-]{0,24}(?:\\{0,7}[\"'])?\s{0,4}(?:=>|:=|=|:)\s{0,4}(?:\\{0,7}[\"'])?([A-Za-z0-9_+/.~-]{16,4096}={0,2})",
    re.IGNORECASE,
)
_PEM: Final = re.compile(
    rb"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s:,.]|-(?!-)|\\+[nrt/])*"
    rb"(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
)
_PEM_NOISE: Final = re.compile(rb"\\+[nrt]|[^A-Za-z0-9+/=]")
#: A letter that is not ASCII, as most JSON writers spell it.
_SPELLED: Final = rb"\\{1,7}u(?!00[0-7])[0-9a-fA-F]{4}"
_URL_PASSWORD: Final = re.compile(
    rb":(?:\\{0,7}/){2}(?:[^\s\"'\\/@:\[]|" + _SPELLED + rb"){0,128}:((?:[^\s\"'\\/@\[]|" + _SPELLED + rb"){1,256})@"
)
_PASSWORD: Final = re.compile(
    rb"(?i)passw(?:or)?d[A-Za-z0-9_-]{0,16}(?:\\{0,7}[\"'])?\s{0,4}(?:=>|:=|=|:)\s{0,4}(?:\\{0,7}[\"'])?"
    rb"((?:[^\s\"'\\,;&<>(){}\[\]$=]|" + _SPELLED + rb"){6,128}={0,2})"
)
_PWD: Final = re.compile(rb"pwd\s{0,4}=\s{0,4}((?:[^\s\"'\\,;&<>(){}\[\]$/~=]|" + _SPELLED + rb"){6,128}={0,2})", re.I)
#: A header with cookies, as it stands in a log or a command; their names stay.
_COOKIES: Final = re.compile(
    rb"cookie(?:\\{0,7}[\"'])?\s{0,4}[:=]\s{0,4}(?:\\{0,7}[\"'])?((?:[^\s\"'\\=;]{1,64}=[^\s\"'\\;]{1,4096};?\s{0,2}){1,32})",
    re.IGNORECASE,
)
_COOKIE: Final = re.compile(rb"=([A-Za-z0-9_+/.%~:|-]{16,4096}={0,2})")
#: What stands, in lower case, where a pattern may match, and its name; the first three are of escaped slashes.
_WORDS: Final = (
    *((b":" + slash + slash, _URL_PASSWORD, "credential") for slash in (rb"\/", rb"\\/", rb"\\\\/", b"/")),
    (b"passw", _PASSWORD, "credential"), (b"pwd", _PWD, "credential"), (b"secret", _SECRET, "token"),
)  # fmt: skip


class Redactor:
    """``key`` (any length, kept private) makes the marks: without it nobody can test a guess against one."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def redact(self, data: bytes) -> tuple[bytes, int]:
        """``data`` with every secret replaced by ``[redacted:<kind>:<8 hex>]``, and how many there were. Idempotent."""
        found = list(_all(data))
        if not found:
            return data, 0
        parts: list[bytes] = []
        position = count = 0
        for begin, end, kind in _merged(found):
            parts += (data[position:begin], self._mark(kind, data[begin:end]))
            position = end
            count += 1
        parts.append(data[position:])
        return b"".join(parts), count

    def _mark(self, kind: str, secret: bytes) -> bytes:
        plain = _PEM_NOISE.sub(b"", secret) if kind == "private-key" else secret
        return f"[redacted:{kind}:{hmac.new(self._key, plain, sha256).hexdigest()[:8]}]".encode()


def _merged(matches: list[_Match]) -> Iterator[_Match]:
    """In order, those that overlap as one: half a secret must not stay behind."""
    current: _Match | None = None
    for begin, end, kind in sorted(matches, key=lambda match: (match[0], -match[1])):
        if current is not None and begin < current[1]:
            current = (current[0], max(current[1], end), current[2])
            continue
        if current is not None:
            yield current
        current = (begin, end, kind)
    if current is not None:
        yield current


def _all(data: bytes) -> Iterator[_Match]:
    chars = data.translate(_RUN_MAP)
    if _RUN in chars:
        yield from _runs(data, chars)
    if b"PRIVATE KEY" in data:
        yield from ((m.start(), m.end(), "private-key") for m in _at(data, b"-----BEGIN ", _PEM, data))
    lower = data.lower()
    for word, pattern, kind in _WORDS if b"\\/" in data else _WORDS[3:]:
        if word in lower:
            for match in _at(data, word, pattern, lower):
                yield *match.span(1), kind
    if b"cookie" in lower:
        for match in _at(data, b"cookie", _COOKIES, lower):
            for one in _COOKIE.finditer(data, *match.span(1)):
                if _is_random(one.group(1)):
                    yield *one.span(1), "cookie"


def _at(data: bytes, literal: bytes, pattern: re.Pattern[bytes], where: bytes) -> Iterator[re.Match[bytes]]:
    """Matches of ``pattern`` where ``literal`` stands in ``where`` (``data`` itself, or all of it in lower case)."""
    accept = _ACCEPT.get(pattern)
    position = 0
    while (at := where.find(literal, position)) >= 0:
        position = at + len(literal)
        match = pattern.match(data, at)
        if match is not None and (accept is None or accept(match.group(1))):
            position = max(position, match.end())
            yield match


def _runs(data: bytes, chars: bytes) -> Iterator[_Match]:
    """Secrets that hold a long run."""
    base64 = data.translate(_BASE64_MAP)
    blob = base64.find(_BLOB)
    position, decoded, events, masked = 0, 0, 2, data
    plain: dict[bytes, int] = {}
    while (begin := chars.find(_RUN, position)) >= 0:
        quoted = _quoted(data, chars, begin)
        if quoted is not None and quoted in plain:
            position = _end(chars, begin)
            plain[quoted] += 1
            if plain[quoted] == _OFTEN and begin >= _NEAR and events:
                events -= 1
                masked = masked.replace(quoted, quoted[:_NEAR] + b" " * (position - begin) + b'"')
                chars = masked.translate(_RUN_MAP)
            continue
        if begin >= decoded:
            encoded, decoded = _encoded(data, base64, _start(data, begin))
            if encoded is not None:
                position = decoded
                yield encoded
                continue
        if 0 <= blob < begin:
            position = _end(base64, max(begin, blob)) if base64.find(b"\0", blob, begin) < 0 else begin
            blob = base64.find(_BLOB, position)
            continue
        position = _end(chars, begin)
        found = _shaped(data, begin) or _named(data, chars, begin)
        if found is not None:
            position = max(position, found[1])
            yield found
        elif quoted is not None and _has_name(quoted):
            plain[quoted] = 1


def _quoted(data: bytes, chars: bytes, begin: int) -> bytes | None:
    """A run that stands alone in quotes, with what is before it: all that decides on it, where its name is in there.
    A stream's events repeat their ids, so each is judged once.
    """
    end = _end(chars, begin)
    if data[begin - 1 : begin] != b'"' or data[end : end + 1] != b'"':
        return None
    return data[max(0, begin - _NEAR) : end + 1]


def _has_name(quoted: bytes) -> bool:
    """Whether the whole of the name before the run is in its first bytes."""
    return quoted[:_NEAR].rstrip(_AROUND).translate(_RUN_MAP).find(b"\0") >= 0


def _encoded(data: bytes, base64: bytes, begin: int) -> tuple[_Match | None, int]:
    """Base64 of a text that holds a secret (a file that was encoded to be passed on), and where that base64 ends."""
    end = _end(base64, begin)
    if not _ENCODED_LEAST <= end - begin <= _ENCODED_MOST or not _is_text(_decoded(data[begin : begin + 16])):
        return None, begin + 1
    found = next(_all(_decoded(data[begin:end])), None)
    return (None if found is None else (begin, end, found[2])), end


def _decoded(encoded: bytes) -> bytes:
    whole = encoded[: len(encoded) // 4 * 4] if len(encoded) % 4 == 1 else encoded + b"=" * (-len(encoded) % 4)
    return b64decode(whole, b"-_") if b"-" in whole or b"_" in whole else b64decode(whole)


def _is_text(data: bytes) -> bool:
    return not data.translate(None, _TEXT_BYTES)


def _end(chars: bytes, begin: int) -> int:
    end = chars.find(b"\0", begin)
    return len(chars) if end < 0 else end


def _shaped(data: bytes, begin: int) -> _Match | None:
    """A key of a known shape at the run's beginning, or behind an escape that seems to belong to it."""
    if data[max(0, begin - 3) : begin] == b"SG." and not _is_glued(data, begin - 3):
        match = SENDGRID.match(data, begin - 3)
        return None if match is None else (begin - 3, match.end(), "sendgrid")
    start = _start(data, begin)
    if data.startswith(PREFIXES, start):
        for prefix, kind, pattern in SHAPES:
            if data.startswith(prefix, start) and (match := pattern.match(data, start)) is not None:
                return start, match.end(), kind
    return None


def _is_glued(data: bytes, begin: int) -> bool:
    """Whether a letter stands right before, one that belongs to no escape."""
    if not begin or data[begin - 1] not in _RUN_BYTES:
        return False
    return data[max(0, begin - 2) : begin - 1] != b"\\" and data[max(0, begin - 6) : max(0, begin - 4)] != b"\\u"


def _start(data: bytes, begin: int) -> int:
    r"""Where a value begins in a run: behind an escape (\n, \u003d, also doubled) that looks like part of it."""
    if begin and data[begin - 1] == 0x5C and data[begin] in b"bfnrtu":
        return begin + (5 if data[begin] == 0x75 else 1)
    return begin


def _named(data: bytes, chars: bytes, begin: int) -> _Match | None:
    """Something random right behind a key word or an authorization scheme."""
    for _ in range(_PIECES):  # base64 may have begun before this run
        if not begin or data[begin - 1] not in b"/+":
            break
        begin = chars.rfind(b"\0", max(0, begin - 64), begin - 1) + 1
    before = data[max(0, begin - 16) : begin].rstrip(b" \t\"'\\")
    if not (before.endswith(_ASSIGNED) and _is_key_word(data, begin)) and not before.lower().endswith(_SCHEMES):
        return None
    begin = _start(data, begin)
    match = _VALUE.match(data, begin)
    return None if match is None or not _is_random(match.group()) else (begin, match.end(), "token")


def _is_key_word(data: bytes, begin: int) -> bool:
    """Whether the name that is assigned to right before ``begin`` is one of a secret."""
    context = data[max(0, begin - 64) : begin].rstrip(_AROUND)
    name = context[context.translate(_RUN_MAP).rfind(b"\0") + 1 :].lower()
    if name == b"key":
        return context[-4:-3] in (b"?", b"&")
    name = name.rstrip(b"0123456789_")
    name = name.removesuffix(b"s")
    return name.endswith(_KEY_WORDS) and not name.endswith(_NO_SECRETS)


def _is_random(value: bytes) -> bool:
    """Letters and digits mixed, ten different ones at least: no words, no paths, no numbers."""
    letters = value.translate(None, b"0123456789")
    return 0 < len(letters) < len(value) and len(set(value)) >= _DISTINCT and value.count(b"/") <= len(value) // 8 + 1


def _is_password(value: bytes) -> bool:
    """Not an expression, a type or a placeholder: letters together with digits or marks that names don't have."""
    if value.startswith((b"[redacted", b"*", b"%", b"os.", b"self.", b"process.")):
        return False
    others = value.rstrip(b"=").translate(None, _NAME_BYTES)
    return len(others) > 0 and value.translate(None, _LETTERS) != value


#: Patterns whose value must also look like one.
_ACCEPT: Final = {_PASSWORD: _is_password, _PWD: _is_password, _SECRET: _is_random}
