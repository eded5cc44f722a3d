"""Images by name, tool results as text, unknown blocks as what they are."""

import base64
import hashlib

import pytest

from daemon.core.records import Image, Text, Thinking
from daemon.wire.parts import encoded_image, flat, linked_image, unknown

PIXEL = b"\x89PNG pixel"
NAME = f"sha256:{hashlib.sha256(PIXEL).hexdigest()}"


def test_the_same_picture_has_the_same_name_however_it_was_sent() -> None:
    data = base64.b64encode(PIXEL).decode()
    assert encoded_image("image/png", data) == Image("image/png", NAME)
    assert linked_image(f"data:image/png;base64,{data}") == Image("image/png", NAME)


@pytest.mark.parametrize("data", ["", "!!!", "abc", "é"])
def test_what_is_no_base64_is_named_all_the_same(data: str) -> None:
    assert encoded_image("image/png", data).source.startswith("sha256:")


def test_a_data_url_without_a_type_is_some_image() -> None:
    assert linked_image("data:,x").media_type == "image/*"


def test_a_link_names_itself() -> None:
    assert linked_image("https://example.com/a.png") == Image("image/*", "https://example.com/a.png")


def test_blocks_nobody_knows_are_equal_whatever_their_order_and_cache_mark() -> None:
    one = unknown({"type": "document", "title": "t", "cache_control": {"type": "ephemeral"}})
    assert one == unknown({"title": "t", "type": "document"})


def test_what_a_tool_gave_back_is_one_text() -> None:
    assert flat([Text("a"), Image("image/png", "sha256:1"), Thinking("no"), Text("b")]) == (
        "a\n[image image/png sha256:1]\nb"
    )
