"""What becomes a rule, what is the same rule, what goes."""

import pytest

from daemon.core.playbook import Rule
from recipes.playbook import rules


def test_a_text_becomes_one_line() -> None:
    assert rules.cleaned("  Answer in\n one short\tsentence. ", 400) == "Answer in one short sentence."


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "says nothing"),
        (" … !", "says nothing"),
        ("be nice\u202e", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("be\u200b nice", "U+200B"),
        ("be nice\U000e0041\U000e0042", "U+E0041"),
        ("be \x1b[31mnice", "U+001B"),
        ("x" * 401, "401 characters, a rule has at most 400"),
    ],
)
def test_what_cannot_be_a_rule_says_why(text: str, says: str) -> None:
    with pytest.raises(rules.NoRule) as caught:
        rules.cleaned(text, 400)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Answer in one short sentence.", "answer in one short sentence"),
        ("Answer in one short sentence.", "Please answer in one short sentence!"),
        ("Answer in short sentences", "Answer in short sentence"),
        ("Don't use tabs", "Don\u2019t use tabs."),
        ("Use type hints in all Python code", "Always use type hints in all Python code"),
        ("C++ only", "c++ only."),
        ("日本語で答えて", "日本語で答えて。"),
    ],
)
def test_the_same_rule(one: str, other: str) -> None:
    assert rules.same(one, other, 0.8)
    assert rules.same(other, one, 0.8)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use tabs in all of the Makefiles here", "Do not use tabs in all of the Makefiles here"),
        ("Always answer me in one short sentence", "Never answer me in one short sentence"),
        ("use uv not pip", "use pip not uv"),
        ("Use pytest to run all the tests in the api folder", "Use pytest to run all the tests in the web folder"),
        ("Answer in 2 sentences at the very most", "Answer in 3 sentences at the very most"),
        ("Write comments in every new function you add", "Write comments only in every new function you add"),
        ("Use C", "Use C++"),
        ("Use tabs", "Use tabs in Makefiles"),
        ("日本語で答えて", "英語で答えて"),
    ],
)
def test_another_rule(one: str, other: str) -> None:
    assert not rules.same(one, other, 0.8)
    assert not rules.same(other, one, 0.8)


def test_a_rule_is_harmful_by_a_margin() -> None:
    book = [Rule("r-00001", "a", 5, 7), Rule("r-00002", "b", 0, 3), Rule("r-00003", "c", 1, 9)]
    assert [rule.id for rule in rules.harmful(book, 3)] == ["r-00002", "r-00003"]


def test_the_least_helpful_gives_way_and_never_the_newest() -> None:
    book = [Rule("r-00001", "a", 1, 0), Rule("r-00002", "b"), Rule("r-00003", "c"), Rule("r-00004", "new", 0, 5)]
    assert [rule.id for rule in rules.surplus(book, 2, 1000)] == ["r-00002", "r-00003"]
    assert rules.surplus(book, 4, 1000) == []


def test_tokens_are_a_budget_too() -> None:
    book = [Rule(f"r-0000{n}", "x" * 398) for n in range(1, 5)]
    assert rules.tokens(book) == 401
    assert [rule.id for rule in rules.surplus(book, 40, 205)] == ["r-00001", "r-00002"]
    assert rules.surplus(book[:1], 40, 1) == []
