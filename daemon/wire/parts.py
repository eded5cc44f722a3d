"""Pieces of messages that the dialects share: images by name, tool results as text, unknown blocks as JSON."""

import base64
import binascii
from hashlib import sha256
from typing import Any

from daemon.core.records import Image, Message, Part, Text, ToolResult, ToolUse
from daemon.wire import jsontext


def encoded_image(media_type: str, data: str) -> Image:
    """An image sent inline (base64): named by the sha256 of its bytes."""
    try:
        content = base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        content = data.encode("utf-8", "replace")
    return Image(media_type, f"sha256:{sha256(content).hexdigest()}", f"data:{media_type};base64,{data}")


def linked_image(url: str) -> Image:
    """An image by URL; a ``data:`` URL is one sent inline."""
    if not url.startswith("data:"):
        return Image("image/*", url, url if url.startswith(("http://", "https://")) else "")
    kind, _, data = url.removeprefix("data:").partition(",")
    return encoded_image(kind.partition(";")[0] or "image/*", data)


def unknown(block: dict[str, Any]) -> Part:
    """A block of a kind that has no word of its own: shown and compared as its JSON, whatever its cache marks."""
    return Text(jsontext.text({name: block[name] for name in sorted(block) if name != "cache_control"}))


def calls_are_whole(message: Message) -> bool:
    """Whether each call's arguments are a JSON object: what was cut off is none, whatever reason to stop was told."""
    return all(jsontext.arguments(part.arguments) is not None for part in message.parts if isinstance(part, ToolUse))


def flat(parts: list[Part]) -> str:
    """What a tool gave back as one text; images are named in their place."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            lines.append(part.text)
        elif isinstance(part, Image):
            lines.append(f"[image {part.media_type} {part.source}]")
    return "\n".join(lines)


def result(id: str, parts: list[Part], *, is_error: bool = False) -> ToolResult:
    """What a tool gave back."""
    return ToolResult(id, flat(parts), is_error, tuple(part for part in parts if isinstance(part, Image)))
