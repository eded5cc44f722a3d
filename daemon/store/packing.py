"""Compression of what the store keeps. One `Packer` a thread: zstandard's objects are not safe to share."""

from typing import Final

import zstandard

#: Level 3: half the time of 6 for 4 % more bytes on messages of a coding session (bench/store.py).
_LEVEL: Final = 3


class Packer:
    """zstd frames with checksums, plain or against similar bytes kept elsewhere."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self._decompressor = zstandard.ZstdDecompressor()

    def pack(self, data: bytes, like: bytes | None = None) -> bytes:
        if like is None:
            return self._compressor.compress(data)
        compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, dict_data=_dictionary(like))
        return compressor.compress(data)

    def unpack(self, body: bytes, like: bytes | None = None) -> bytes:
        """Raises zstandard.ZstdError when the bytes are damaged."""
        if like is None:
            return self._decompressor.decompress(body)
        return zstandard.ZstdDecompressor(dict_data=_dictionary(like)).decompress(body)


def _dictionary(like: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(like, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
