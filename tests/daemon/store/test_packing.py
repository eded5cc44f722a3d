"""Compression, plain and against something alike."""

import random

import pytest
import zstandard

from daemon.store.packing import Packer


def test_packing_against_something_alike_is_small() -> None:
    packer, data = Packer(), random.Random(1).randbytes(5000)
    changed = data[:2000] + b"!" + data[2000:]
    plain, delta = packer.pack(changed), packer.pack(changed, data)
    assert len(delta) < 100 < len(plain)
    assert packer.unpack(plain) == packer.unpack(delta, data) == changed
    assert packer.unpack(packer.pack(b"")) == b""


def test_damaged_bytes_are_noticed() -> None:
    packer = Packer()
    packed = bytearray(packer.pack(b"a text that is long enough to be packed" * 3))
    packed[-1] ^= 1
    with pytest.raises(zstandard.ZstdError):
        packer.unpack(bytes(packed))
