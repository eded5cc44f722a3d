"""A playbook keeps every rule through any number of edits, and an agent sees only their words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.playbook import Rule, added, counted, dump, parse, told

_TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1).filter(str.strip)


@given(st.lists(_TEXTS))
def test_what_is_written_is_read_back(texts: list[str]) -> None:
    rules: tuple[Rule, ...] = ()
    for text in texts:
        rules = added(rules, text)
    assert parse(dump(rules)) == rules
    assert [rule.text for rule in rules] == [" ".join(text.split()) for text in texts]


def test_ids_are_never_given_twice() -> None:
    rules = added(added((), "one"), "two")
    assert [rule.id for rule in added(rules[1:], "three")] == ["r-00002", "r-00003"]


def test_counters_move_together_and_agents_do_not_see_them() -> None:
    rules = counted(added((), "Answer in one short sentence."), helpful=2, harmful=1)
    assert (rules[0].helpful, rules[0].harmful) == (2, 1)
    assert told(rules) == "- Answer in one short sentence."
    assert told(()) == ""


def test_a_line_that_is_no_rule_is_named() -> None:
    with pytest.raises(ValueError, match="line 3 is not a rule: 'be nice'"):
        parse("# Playbook\n\nbe nice\n")
