"""Compressed bodies are read for the record."""

import gzip
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.encoding import TooLong, Undecodable, Undoing, decoded, readable

BODY = b'{"model":"m"}' * 50


def _bare_deflate(body: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(body) + squeeze.flush()


@pytest.mark.parametrize(
    ("name", "squeezed"),
    [
        ("gzip", gzip.compress(BODY)),
        ("x-gzip", gzip.compress(BODY)),
        ("GZIP", gzip.compress(BODY)),
        ("deflate", zlib.compress(BODY)),
        ("deflate", _bare_deflate(BODY)),
        ("zstd", zstandard.compress(BODY)),
        ("", BODY),
        ("identity", BODY),
        ("gzip, zstd", zstandard.compress(gzip.compress(BODY))),
    ],
)
def test_known_encodings_are_undone(name: str, squeezed: bytes) -> None:
    assert decoded(squeezed, name) == BODY


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("name", "squeezed"),
    [
        ("gzip", gzip.compress(BODY)),
        ("gzip", gzip.compress(BODY[:9]) + gzip.compress(BODY[9:])),
        ("gzip", gzip.compress(BODY) + bytes(20)),
        ("X-GZIP ", gzip.compress(BODY)),
        ("deflate", zlib.compress(BODY)),
        ("deflate", _bare_deflate(BODY)),
        ("zstd", zstandard.compress(BODY)),
        ("zstd", zstandard.compress(BODY[:9]) + zstandard.compress(BODY[9:])),
        ("identity", BODY),
    ],
)
def test_an_answer_is_undone_as_it_comes(name: str, squeezed: bytes, size: int) -> None:
    """BUGS B046, B047 and B049: however it is squeezed, and wherever its chunks are cut."""
    undo = Undoing(name)
    assert b"".join(undo.feed(squeezed[at : at + size]) for at in range(0, len(squeezed), size)) == BODY


@pytest.mark.parametrize("name", ["gzip", "deflate", "zstd"])
def test_an_empty_body_is_empty_in_any_encoding(name: str) -> None:
    assert decoded(b"", name) == b""


@given(st.integers(min_value=20))
def test_a_gzip_body_that_was_cut_off_is_read_as_far_as_it_goes(length: int) -> None:
    whole = gzip.compress(bytes(range(256)) * 40)
    assert (bytes(range(256)) * 40).startswith(decoded(whole[:length], "gzip"))


def test_zstd_frames_in_a_row_are_one_body() -> None:
    assert decoded(zstandard.compress(b"one ") + zstandard.compress(b"two"), "zstd") == b"one two"


@pytest.mark.parametrize(
    ("accepted", "asked"),
    [
        (b"gzip,deflate , zstd;q=0.5", b"gzip,deflate , zstd;q=0.5"),
        (b"gzip, deflate, br, zstd", b"gzip, deflate, zstd"),
        (b"BR;q=1.0, *;q=0.5, GZip", b"GZip"),
        (b"br", b"identity"),
        (b"*", b"identity"),
    ],
)
def test_only_what_can_be_read_is_asked_for(accepted: bytes, asked: bytes) -> None:
    assert readable(accepted) == asked


def test_an_encoding_nobody_reads_here_is_named() -> None:
    with pytest.raises(Undecodable, match="'br'"):
        decoded(b"\x0b\x02\x80", "br")


@pytest.mark.parametrize("name", ["gzip", "deflate", "zstd"])
def test_bytes_of_another_kind_are_told(name: str) -> None:
    with pytest.raises(Undecodable, match=name):
        decoded(b"plain text, really", name)


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("gzip", gzip.compress(bytes(100_000))),
        ("deflate", zlib.compress(bytes(100_000))),
        ("deflate", _bare_deflate(bytes(100_000))),
        ("zstd", zstandard.compress(bytes(100_000))),
    ],
)
def test_a_bomb_is_not_unpacked(name: str, packed: bytes) -> None:
    with pytest.raises(TooLong, match="over 1000 bytes"):
        decoded(packed, name, 1000)
    assert decoded(packed, name, 100_000) == bytes(100_000)
