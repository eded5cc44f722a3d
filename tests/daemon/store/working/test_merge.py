"""Three trees, every case: a person's own words always stay (NousResearch/hermes-agent#19549, B192)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.store.working.merge import merged


@pytest.mark.parametrize(
    ("was", "here", "new", "take", "edit", "conflict"),
    [
        ("a", "a", "a", False, False, False),
        ("a", "a", "b", True, False, False),  # untouched: updated
        ("a", "a", None, True, False, False),  # untouched: removed
        (None, None, "b", True, False, False),  # new in the release
        ("a", "m", "a", False, True, False),  # edited, and the release leaves it alone
        ("a", None, "a", False, True, False),  # removed by the person
        (None, "m", None, False, True, False),  # added by the person
        ("a", "m", "b", False, True, True),
        ("a", None, "b", False, True, True),
        ("a", "m", None, False, True, True),
        (None, "m", "b", False, True, True),
        ("a", "b", "b", False, False, False),  # both the same
        ("a", None, None, False, False, False),
        (None, "b", "b", False, False, False),
    ],
)
def test_b192_what_a_person_edited_wins_and_what_they_did_not_is_updated(
    was: str | None, here: str | None, new: str | None, take: bool, edit: bool, conflict: bool
) -> None:
    """BUGS B192."""

    def tree(text: str | None) -> dict[str, str]:
        return {} if text is None else {"rules.md": text}

    found = merged(tree(was), tree(here), tree(new))
    assert found.take == ({"rules.md": new} if take else {})
    assert found.edits == ({"rules.md": here} if edit else {})
    assert found.conflicts == (("rules.md",) if conflict else ())


def test_what_nobody_could_read_is_neither_taken_nor_an_edit() -> None:
    base, theirs = {"a": "1", "b": "1"}, {"a": "2", "b": "1"}
    found = merged(base, {}, theirs, unread={"a", "b"})
    assert (found.take, found.edits, found.conflicts) == ({}, {}, ("a",))


trees = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("123"))


@given(trees, trees, trees)
def test_after_taking_it_only_a_persons_edits_are_left(
    base: dict[str, str], mine: dict[str, str], theirs: dict[str, str]
) -> None:
    found = merged(base, mine, theirs)
    after = {path: text for path, text in {**mine, **found.take}.items() if text is not None}
    again = merged(theirs, after, theirs)
    assert (again.take, again.edits) == ({}, found.edits)
    for path in mine.keys() - base.keys():
        assert after.get(path) == mine[path], "what a person added is never lost"
    for path in base.keys() & mine.keys():
        assert mine[path] == base[path] or after.get(path) == mine[path], "nor what they changed"
