"""What the recipe picks from a stream."""

import dataclasses
from typing import Any

from daemon.core.learning import Experience, Feedback, Instruction
from recipes.base import Signal, Target
from recipes.sft.config import SFTConfig
from recipes.sft.recipe import SFTRecipe, wanted
from tests.fakes.context import FakeStream
from tests.recipes.sft.one_sentence import NOTE, experience, lines, note, question


def edited(number: int) -> Experience:
    return experience(number, f"What is {number}?", feedback=(Feedback("e", None, None, "A number."),))


def marked(number: int, score: float) -> Experience:
    return experience(number, f"What is {number}?", feedback=(Feedback("m", score, None, None),))


def asked(count: int = 36) -> list[Experience]:
    return [experience(100 + number, text) for number, text in enumerate(lines("questions.txt")[:count])]


def recipe(**config: Any) -> SFTRecipe:
    return SFTRecipe(SFTConfig(**config))


def test_it_says_what_it_is() -> None:
    assert SFTRecipe.name == "sft"
    assert SFTRecipe.target is Target.WEIGHTS
    assert set(SFTRecipe.signals) == {Signal.EDIT, Signal.MARK, Signal.NOTE, Signal.INSTRUCTION}
    assert all(field.default is not dataclasses.MISSING for field in dataclasses.fields(SFTConfig))


def test_what_a_person_wants_is_their_edit_then_what_they_marked_good() -> None:
    both = experience(1, "What?", feedback=(Feedback("m", 1.0, None, None), Feedback("e", None, None, "Edited.")))
    assert wanted(both) == "Edited."
    assert wanted(marked(1, 1.0)) == "It is a long story. It goes on."
    assert wanted(marked(1, 0.0)) is None
    assert wanted(experience(1, "What?")) is None


def test_an_accepted_answer_that_was_cut_off_is_not_learned() -> None:
    cut = dataclasses.replace(marked(1, 1.0), ended=False)
    assert wanted(cut) is None
    assert wanted(dataclasses.replace(edited(1), ended=False)) == "A number."
    assert recipe(least_answers=1).select(FakeStream([cut])) is None


def test_answers_start_a_job_once_there_are_enough() -> None:
    answers = [edited(1), marked(2, 1.0), marked(3, 0.0), experience(4, "What?")]
    assert recipe(least_answers=3).select(FakeStream(answers)) is None
    batch = recipe(least_answers=2).select(FakeStream(answers))
    assert batch is not None
    assert [one.receipt for one in batch.experience] == ["record-1", "record-2"]


def test_old_answers_are_left_out() -> None:
    answers = [edited(1), dataclasses.replace(edited(2), staleness=5)]
    assert recipe(least_answers=2, max_staleness=4).select(FakeStream(answers)) is None
    assert recipe(least_answers=2, max_staleness=5).select(FakeStream(answers)) is not None


def test_long_conversations_are_left_out() -> None:
    """On a processor an agent's whole session would take hours."""
    session = dataclasses.replace(edited(2), prompt=question("word " * 1000))
    assert recipe(least_answers=2, longest=1000).select(FakeStream([edited(1), session])) is None
    assert recipe(least_answers=2, longest=2000).select(FakeStream([edited(1), session])) is not None


def test_a_note_starts_a_job_with_old_questions_to_teach_it_on() -> None:
    batch = recipe().select(FakeStream(asked(), [note()]))
    assert batch is not None
    assert (len(batch.experience), batch.notes) == (36, (note(),))
    assert recipe().select(FakeStream(asked(11), [note()])) is None
    early = recipe(least_answers=1).select(FakeStream([edited(1), *asked(11)], [note()]))
    assert early is not None
    assert ([one.receipt for one in early.experience], early.notes) == (["record-1"], ())
    few = recipe(most_questions=20).select(FakeStream([edited(1), *asked()], [note()]))
    assert few is not None
    assert [one.receipt for one in few.experience] == ["record-1", *(f"record-{n}" for n in range(116, 136))]


def test_one_wish_a_job_the_oldest_and_all_that_say_the_same() -> None:
    notes = [note(id="1"), note("Use lists.", id="2"), note(f" {NOTE.lower()} ", id="3")]
    wishes = [Instruction("4", "default", NOTE, 0), Instruction("5", "default", "Be polite.", 0)]
    batch = recipe().select(FakeStream(asked(), notes, wishes))
    assert batch is not None
    assert ([one.id for one in batch.notes], [one.id for one in batch.instructions]) == (["1", "3"], ["4"])
    alone = recipe().select(FakeStream(asked(), [], wishes[1:]))
    assert alone is not None
    assert [one.text for one in alone.instructions] == ["Be polite."]


def test_praise_is_no_wish() -> None:
    praise = Feedback("1", 1.0, "Thanks, that is great!", None)
    assert recipe(least_answers=100).select(FakeStream(asked(), [praise])) is None
