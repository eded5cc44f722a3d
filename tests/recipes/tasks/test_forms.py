"""Each form with what has it and what only looks like it."""

import pytest

from daemon.core.errors import UsageError
from recipes.tasks import forms


@pytest.mark.parametrize(
    "text",
    [
        "Pi is about 3.14.",
        "Is it one?",
        '"Why?" he asked, and left!',
        "Dr. Smith met J. K. Rowling in St. Louis at 5 p.m. Tuesday.",
        "A mammal, e.g. a whale, breathes air (see Fig. 3 and No. 4).",
        "The U.S. Army uses v1.2 of example.com etc. and more.",
        "**Yes.**",
        "Wait... what?",
        "这是一句。",
        "  It has blanks around it.\n",
    ],
)
def test_one_sentence(text: str) -> None:
    assert forms.passes("one_sentence", text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "No mark",
        "One. Two.",
        "The answer is no. It never was.",
        "He likes vitamin C. It helps.",
        "We moved to the U.S. The house is big.",
        "He left Main St. The end.",
        "In 1999. It was over.",
        "1. Photosynthesis makes sugar.",
        "Really? Yes, it is.",
        "这是。那是。",
        "One line.\nAnother line.",
        "Here is a list:\n- one",
        "It ends well. But then it is cut",
    ],
)
def test_not_one_sentence(text: str) -> None:
    assert not forms.passes("one_sentence", text)


@pytest.mark.parametrize("name", ["one_sentence", "upper_case", "max_words:9"])
def test_an_answer_that_was_cut_off_has_no_form(name: str) -> None:
    assert forms.passes(name, "YES.")
    assert not forms.passes(name, "YES.", ended=False)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("json", '{"a": [1, 2]}', "{'a': 1}"),
        ("json", '```json\n{"a": 1}\n```', 'Here: ```json\n{"a": 1}\n```'),
        ("json", "[]", "NaN"),
        ("json", "[1]", "[NaN]"),
        ("json", "{}", "42"),
        ("json", "{}", "[" * 100_000),
        ("one_code_block", "```sh\nls -la\n```", "```sh\nls\n```\nThat lists."),
        ("one_code_block", "```\nls\n```", "```\n\n```"),
        ("one_code_block", "```\nls\n```", "```\na\n```\n```\nb\n```"),
        ("one_code_block", "```\nls\n```", "ls"),
        ("bullet_list", "- one\n- two", "- one"),
        ("bullet_list", "* one\n\n* two", "Sure:\n- one\n- two"),
        ("bullet_list", "• one\n  - two", "-one\n-two"),
        ("numbered_list", "1. one\n2. two", "1. one\n3. two"),
        ("numbered_list", "1) one\n2) two", "1. one"),
        ("numbered_list", "1. one\n2. two", "1. one\nmore\n2. two"),
        ("upper_case", "YES, 3 OF THEM.", "Yes"),
        ("upper_case", "ÄÖ", "12."),
        ("max_words:3", "one two three", "one two three four"),
        ("max_words:3", "one", ""),
    ],
)
def test_forms(name: str, good: str, bad: str) -> None:
    assert forms.passes(name, good)
    assert not forms.passes(name, bad)


@pytest.mark.parametrize(
    ("name", "near"), [("one_sentense", "one_sentence"), ("bullets", "bullet_list"), ("maxwords:3", "max_words:N")]
)
def test_an_unknown_form_is_refused_with_the_nearest_named(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=name) as caught:
        forms.form(name)
    assert caught.value.hint is not None
    assert f"did you mean '{near}'" in caught.value.hint


@pytest.mark.parametrize(
    "name", ["max_words", "max_words:", "max_words:0", "max_words:-3", "max_words:²", "json:3", ""]
)
def test_a_form_without_sense_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        forms.form(name)


def test_every_form_that_is_named_is_known() -> None:
    for name in forms.names():
        assert not forms.form(name.replace("N", "5"))("")
