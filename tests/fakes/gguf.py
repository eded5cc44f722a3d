"""Small files in the GGUF format: a real header, and padding where the weights would be."""

import struct


def make(*, licence: str | None = "apache-2.0", kind: str = "model", size: int = 4096, seed: int = 0) -> bytes:
    """A GGUF 3 file of ``size`` bytes; files with different seeds differ."""
    pairs = [_text("general.architecture", "llama"), _text("general.type", kind), _text("general.name", "Tiny")]
    if licence is not None:
        pairs.append(_text("general.license", licence))
    pairs += [_strings("general.languages", ["en", "de"]), _number("general.file_type", 3)]
    pairs.append(_strings("tokenizer.ggml.tokens", ["a", "b"]))
    header = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)
    padding = bytes((index * 31 + seed) % 251 for index in range(1009))
    return (header + padding * (size // len(padding) + 1))[: max(size, len(header))]


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _text(key: str, value: str) -> bytes:
    return _string(key) + struct.pack("<I", 8) + _string(value)


def _number(key: str, value: int) -> bytes:
    return _string(key) + struct.pack("<II", 4, value)


def _strings(key: str, values: list[str]) -> bytes:
    return _string(key) + struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(_string, values))
