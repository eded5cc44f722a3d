"""Content encodings, undone for the record only: what passes by is never touched."""

import io
import zlib
from collections.abc import Callable
from typing import Final

import zstandard

#: A record is never larger than this, however small its body was when compressed.
LIMIT: Final = 256 * 1024 * 1024


#: The first byte of a gzip, and the low half of a zlib stream's (RFC 1950: compression method 8).
_GZIP: Final = 0x1F
_ZLIB: Final = 8
_READABLE: Final = frozenset((b"gzip", b"x-gzip", b"deflate", b"zstd", b"identity"))


class Undecodable(ValueError):
    """The encoding is unknown, or the bytes are not in it; the message says which."""


class TooLong(Undecodable):
    """More bytes come out than may."""


def decoded(body: bytes, encodings: str, limit: int = LIMIT) -> bytes:
    """``body`` with ``content-encoding`` undone, as far as it goes when it was cut off. Raises Undecodable, TooLong."""
    for name in reversed([one.strip().lower() for one in encodings.split(",")]):
        if body and name not in ("", "identity"):
            body = _undo(body, name, limit)
    return body


class Undoing:
    """`decoded` in pieces, as they come."""

    def __init__(self, encoding: str) -> None:
        """Raises Undecodable for an encoding that is not known, or more than one."""
        name = encoding.strip().lower()
        if name in ("gzip", "x-gzip", "deflate"):
            self._undo: Callable[[bytes], bytes] = _Inflating().feed
        elif name == "zstd":
            self._undo = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress
        elif name == "identity":
            self._undo = bytes
        else:
            raise Undecodable(f"the encoding {name!r} cannot be read here")
        self._name = name

    def feed(self, chunk: bytes) -> bytes:
        """Raises Undecodable."""
        try:
            return self._undo(chunk)
        except (zlib.error, zstandard.ZstdError) as error:
            raise Undecodable(f"the body is not {self._name}: {error}") from None


class _Inflating:
    """gzip, zlib or bare deflate in pieces, told by the first byte. What follows a whole gzip is more of it, or nothing
    (RFC 1952, 2.2).
    """

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None

    def feed(self, chunk: bytes) -> bytes:
        plain = []
        while chunk:
            if self._member is None:
                self._member = zlib.decompressobj(wbits=47 if chunk[0] == _GZIP or chunk[0] & 15 == _ZLIB else -15)
            elif self._member.eof:
                if chunk[0] != _GZIP:
                    break
                self._member = zlib.decompressobj(wbits=31)
            plain.append(self._member.decompress(chunk))
            chunk = self._member.unused_data
        return b"".join(plain)


def readable(accepted: bytes) -> bytes:
    """An ``accept-encoding`` without what `decoded` cannot undo: an answer in ``br`` could not be recorded."""
    offers = accepted.split(b",")
    kept = [offer for offer in offers if offer.partition(b";")[0].strip().lower() in _READABLE]
    return accepted if len(kept) == len(offers) else b",".join(kept).strip() or b"identity"


def _undo(body: bytes, name: str, limit: int) -> bytes:
    try:
        if name in ("gzip", "x-gzip"):
            plain = zlib.decompressobj(wbits=31).decompress(body, limit + 1)
        elif name == "deflate":
            plain = _inflate(body, limit + 1)
        elif name == "zstd":
            plain = (
                zstandard.ZstdDecompressor().stream_reader(io.BytesIO(body), read_across_frames=True).read(limit + 1)
            )
        else:
            raise Undecodable(f"the encoding {name!r} cannot be read here")
    except (zlib.error, zstandard.ZstdError) as error:
        raise Undecodable(f"the body is not {name}: {error}") from None
    if len(plain) > limit:
        del plain  # the error's traceback would keep it
        raise TooLong(f"the {name} body is over {limit} bytes when decoded")
    return plain


def _inflate(body: bytes, most: int) -> bytes:
    """RFC 9110 says zlib, some servers send bare deflate."""
    try:
        return zlib.decompressobj().decompress(body, most)
    except zlib.error:
        return zlib.decompressobj(wbits=-15).decompress(body, most)
