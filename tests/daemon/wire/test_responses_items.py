"""Items of the Responses dialect, read as messages."""

from typing import Any

import pytest

from daemon.core.errors import BadRequest
from daemon.core.records import Image, Message, Text, Thinking, ToolResult, ToolUse
from daemon.wire import canonical
from daemon.wire.responses_items import is_answer, message

WORDS = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Look:"}]}
CALL = {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}', "id": "fc_1"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}


def one(item: Any) -> Message:
    return message([item])


def test_a_text_alone_is_what_the_user_says() -> None:
    assert one("hi") == Message("user", (Text("hi"),))


@pytest.mark.parametrize(("role", "read"), [("developer", "system"), ("system", "system"), ("user", "user")])
def test_roles_have_the_words_of_the_other_dialects(role: str, read: str) -> None:
    said = {"role": role, "content": [{"type": "input_text", "text": "x"}]}
    assert one(said) == Message(read, (Text("x"),))  # type: ignore[arg-type]


def test_an_answers_items_are_one_message() -> None:
    assert message([THOUGHT, WORDS, CALL]) == Message(
        "assistant", (Thinking("hm"), Text("Look:"), ToolUse("c1", "bash", '{"command": "ls"}'))
    )


@pytest.mark.parametrize(
    ("item", "answer"),
    [
        (WORDS, True),
        (CALL, True),
        (THOUGHT, True),
        ({"type": "custom_tool_call"}, True),
        ({"type": "web_search_call"}, True),
        ({"role": "assistant", "content": "x"}, True),
        ({"role": "user", "content": "x"}, False),
        ({"type": "function_call_output", "output": "x"}, False),
        ("text", False),
        (None, False),
        ({"type": 3}, False),
    ],
)
def test_what_a_model_made_is_told_from_what_it_was_given(item: Any, answer: bool) -> None:
    assert is_answer(item) is answer


def test_an_encrypted_thought_keeps_its_seal() -> None:
    (part,) = one({**THOUGHT, "encrypted_content": "ZW5j"}).parts
    assert part == Thinking("hm", "openai:rs_1:ZW5j")


def test_free_text_for_a_tool_is_its_argument_input() -> None:
    (part,) = one({"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin"}).parts
    assert part == ToolUse("c", "apply_patch", '{"input":"*** Begin"}')


def test_a_tool_in_a_namespace_is_named_with_it() -> None:
    (part,) = one({**CALL, "namespace": "agents"}).parts
    assert part == ToolUse("c1", "agents__bash", '{"command": "ls"}')


@pytest.mark.parametrize("output", ["done", [{"type": "input_text", "text": "done"}]])
@pytest.mark.parametrize("kind", ["function_call_output", "custom_tool_call_output"])
def test_what_a_tool_gave_back_is_a_tools_message(kind: str, output: Any) -> None:
    assert one({"type": kind, "call_id": "c1", "output": output}) == Message("tool", (ToolResult("c1", "done"),))


def test_a_picture_a_tool_gave_back_is_kept_for_who_can_see_it() -> None:
    url = "data:image/png;base64,aGk="
    (part,) = one(
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": url}]}
    ).parts
    assert isinstance(part, ToolResult)
    assert [image.url for image in part.images] == [url]
    assert part.content.startswith("[image image/png sha256:")


def test_images_are_named_by_what_they_show() -> None:
    said = {"role": "user", "content": [{"type": "input_image", "image_url": "https://x/a.png"}]}
    assert one(said).parts == (Image("image/*", "https://x/a.png"),)


def test_a_refusal_is_what_was_said() -> None:
    refused = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}
    assert one(refused).text == "no"


def test_a_call_on_the_vendors_servers_stays_equal_however_it_is_sent_again() -> None:
    first = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}}
    again = {"type": "web_search_call", "action": {"query": "x"}}
    assert canonical.key(one(first)) == canonical.key(one(again))


@pytest.mark.parametrize(
    "item", [3, None, [], {"role": "wizard"}, {"role": "user", "content": 3}, {"role": "user", "content": [3]}]
)
def test_what_is_no_item_is_named(item: Any) -> None:
    with pytest.raises(BadRequest, match="input"):
        one(item)
