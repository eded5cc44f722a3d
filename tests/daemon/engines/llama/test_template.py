import re

import pytest

from daemon.core.errors import BadRequest
from daemon.core.records import Image, Message, Part, Role, Text, Thinking, Tool, ToolResult, ToolUse
from daemon.engines.llama.template import ChatTemplate

SMOL = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are SmolLM<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

#: Knows tools the way Qwen 2.5 does.
TOOLED = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}{{- messages[0]['content'] }}{%- endif %}
    {{- "\\n<tools>" }}
    {%- for tool in tools %}{{- "\\n" }}{{- tool | tojson }}{%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>assistant' }}
        {%- if message.content %}{{- '\\n' + message.content }}{%- endif %}
        {%- for tool_call in message.tool_calls %}
            {{- '\\n<tool_call>\\n{"name": "' + tool_call.function.name + '", "arguments": ' }}
            {{- tool_call.function.arguments | tojson }}{{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""

#: No system role, and roles must alternate, as in Gemma and the first Mistrals.
STRICT = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('No system role') }}{% endif %}"
    "{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
    "{{ '<turn>' + message['role'] + '\n' + message['content'] | trim + '<end>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<turn>model\n' }}{% endif %}"
)

WEATHER = Tool("weather", "Looks out of the window.", {"type": "object", "properties": {"city": {"type": "string"}}})


def say(role: Role, *parts: Part | str) -> Message:
    return Message(role, tuple(Text(part) if isinstance(part, str) else part for part in parts))


CALL = say("assistant", "Let me look.", ToolUse("call_1", "weather", '{"city": "Oslo"}'))
RESULT = say("user", ToolResult("call_1", "rain"))


def test_the_models_own_template_is_followed() -> None:
    assert ChatTemplate(SMOL).render([say("system", "Be brief."), say("user", "Hi")]) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_system_messages_at_the_start_are_one() -> None:
    text = ChatTemplate(SMOL).render([say("system", "A."), say("system", "B."), say("user", "Hi")])
    assert text.count("<|im_start|>system") == 1
    assert "A.\n\nB." in text


def test_a_late_system_message_stays_where_it_is() -> None:
    conversation = [say("user", "a"), say("assistant", "b"), say("system", "Be kind."), say("user", "c")]
    assert "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nc" in ChatTemplate(SMOL).render(conversation)
    assert "<system>\nBe kind.\n</system>\n\nc" in ChatTemplate(STRICT).render(conversation)


def test_a_system_message_goes_into_the_first_user_turn_where_there_is_no_system_role() -> None:
    text = ChatTemplate(STRICT, bos="<bos>").render([say("system", "Be brief."), say("user", "Hi")])
    assert text == "<bos><turn>user\nBe brief.\n\nHi<end>\n<turn>model\n"


def test_turns_of_the_same_role_are_joined_only_where_roles_must_alternate() -> None:
    conversation = [say("user", "one"), say("user", "two")]
    assert ChatTemplate(STRICT).render(conversation).startswith("<turn>user\none\n\ntwo<end>")
    assert "one<|im_end|>\n<|im_start|>user\ntwo" in ChatTemplate(SMOL).render(conversation)


def test_a_template_without_tools_gets_them_in_the_system_message() -> None:
    text = ChatTemplate(SMOL).render([say("system", "Be brief."), say("user", "Hi")], [WEATHER])
    system = text.split("<|im_end|>")[0]
    assert "Be brief." in system
    assert "Looks out of the window." in system
    assert '"city"' in system
    assert "<tool_call>" in system


def test_calls_and_results_are_written_as_text_for_a_template_without_tools() -> None:
    text = ChatTemplate(SMOL).render([say("user", "Weather?"), CALL, RESULT], [WEATHER])
    assert (
        "<|im_start|>assistant\nLet me look.\n<tool_call>\n"
        '{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\nrain\n</tool_response><|im_end|>\n"
    ) in text


def test_a_template_that_knows_tools_writes_them_its_own_way() -> None:
    text = ChatTemplate(TOOLED).render([say("system", "S"), say("user", "Weather?"), CALL, RESULT], [WEATHER])
    assert '{"type": "function", "function": {"name": "weather"' in text
    assert '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>' in text
    assert "<|im_start|>user\n<tool_response>\nrain" in text
    assert "You can call these tools" not in text


def test_a_result_and_the_users_words_with_it_both_arrive() -> None:
    conversation = [say("user", "Weather?"), CALL, say("user", ToolResult("call_1", "rain"), "And tomorrow?")]
    for template in (SMOL, TOOLED, STRICT):
        text = ChatTemplate(template).render(conversation, [WEATHER])
        assert re.search(r"rain\n</tool_response>.*And tomorrow\?", text, re.DOTALL)


def test_several_results_share_a_turn_where_tools_are_unknown() -> None:
    text = ChatTemplate(STRICT).render(
        [say("user", "w"), CALL, say("user", ToolResult("call_1", "rain"), ToolResult("call_2", "sun"))], [WEATHER]
    )
    assert "<tool_response>\nrain\n</tool_response>\n<tool_response>\nsun\n</tool_response><end>" in text


def test_a_failed_call_says_so() -> None:
    failed = say("tool", ToolResult("call_1", "no such city", is_error=True))
    assert "Error: no such city" in ChatTemplate(TOOLED).render([say("user", "w"), CALL, failed], [WEATHER])


def test_arguments_that_are_no_json_still_render() -> None:
    broken = say("assistant", ToolUse("call_1", "weather", '{"city": '))
    for template in (SMOL, TOOLED):
        assert '"city": ' in ChatTemplate(template).render([say("user", "w"), broken, RESULT]).replace('\\"', '"')


def test_an_image_leaves_a_mark() -> None:
    text = ChatTemplate(SMOL).render([say("user", Image("image/png", "sha256:0"), "What is it?")])
    assert "[image/png left out: this model reads text only]What is it?" in text


def test_thinking_of_earlier_turns_is_left_to_the_template() -> None:
    source = "{% for m in messages %}{{ m.role }}:{{ m.content }}|{{ m.reasoning_content }};{% endfor %}"
    text = ChatTemplate(source).render([say("user", "a"), say("assistant", Thinking("hm"), "b"), say("user", "c")])
    assert text == "user:a|;assistant:b|hm;user:c|;"


def test_a_trailing_assistant_message_is_gone_on_from() -> None:
    text = ChatTemplate(SMOL).render([say("user", "Count."), say("assistant", "One, two, ")])
    assert text.endswith("<|im_start|>assistant\nOne, two,")


def test_hugging_faces_own_filters_are_there() -> None:
    source = (
        "{{ {'a': '<é>'} | tojson }}{{ [1] | tojson(indent=1) }}{{ strftime_now('%Y') | length }}"
        "{% generation %}x{% endgeneration %}{% for m in messages %}{% break %}{% endfor %}{{ eos_token }}"
    )
    text = ChatTemplate(source, eos="</s>").render([say("user", "a")])
    assert text == '{"a": "<é>"}[\n 1\n]4x</s>'


def test_a_variant_for_tools_is_used_only_with_tools() -> None:
    template = ChatTemplate(SMOL, tool_source=TOOLED)
    assert "<tools>" in template.render([say("user", "a")], [WEATHER])
    assert "SmolLM" in template.render([say("user", "a")])


def test_a_growing_conversation_only_grows_at_the_end() -> None:
    conversation = [
        say("system", "S"),
        say("user", "Weather?"),
        CALL,
        RESULT,
        say("assistant", "Rain."),
        say("user", "Ok"),
    ]
    for source in (SMOL, TOOLED, STRICT):
        template = ChatTemplate(source)
        before = template.render(conversation[:2], [WEATHER])
        for end in (4, 6):
            after = template.render(conversation[:end], [WEATHER])
            assert after.startswith(before.removesuffix("model\n"))
            before = after


def test_a_template_that_refuses_says_why() -> None:
    template = ChatTemplate("{{ raise_exception('no cats here') }}")
    with pytest.raises(BadRequest, match="no cats here"):
        template.render([say("user", "cat")])


def test_a_template_that_cannot_be_read_says_so() -> None:
    with pytest.raises(BadRequest, match="cannot be read"):
        ChatTemplate("{% for %}")


def test_a_template_cannot_reach_python() -> None:
    template = ChatTemplate("{{ messages.__class__.__mro__ }}")
    with pytest.raises(BadRequest):
        template.render([say("user", "a")])
