"""The model teaches itself, or says why it cannot: on the real model, with few tokens; where it must be known what a
model says, one that copies.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from daemon.core.learning import Check, Experience, Feedback
from daemon.core.records import Message
from recipes.base import Answer, Which
from recipes.sft.config import SFTConfig
from recipes.sft.teacher import Teacher
from tests.fakes.context import EngineThread, FakeContext
from tests.recipes.sft.one_sentence import CHECK, NOTE, experience, gate, lines, model_file, question

pytestmark = pytest.mark.engine

CONFIG = SFTConfig(answer_tokens=48)
QUESTIONS = [experience(number, text) for number, text in enumerate(lines("questions.txt")[:4])]
#: No model says this.
NEVER = Check(expression="xyzzy-7f3a")


@pytest.fixture(scope="module")
def engine(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineThread]:
    with EngineThread(model_file(model_path), tmp_path_factory.mktemp("engine") / "log") as running:
        yield running


def context(engine: EngineThread, directory: Path, check: Check | None = CHECK) -> FakeContext:
    return FakeContext(directory, engine, gate=gate(check) if check else [])


def edited(number: int) -> Experience:
    return experience(number, "What is rope?", feedback=(Feedback("e", None, None, "Rope is twisted fibre."),))


def test_a_note_that_the_model_obeys_gives_examples_without_it(engine: EngineThread, tmp_path: Path) -> None:
    given = context(engine, tmp_path)
    examples = Teacher(given, CONFIG).teach(NOTE, QUESTIONS)
    assert examples is not None
    assert len(examples) >= 6
    assert all(NOTE not in str(one["messages"]) for one in examples)
    assert given.said == [f"this note is enough: told it, the model obeys in {given.said[0].split(' in ')[1]}"]
    assert given.asked == [(Which.BASE, 4), (Which.BASE, 4)]


def test_a_job_that_was_killed_does_not_ask_again(engine: EngineThread, tmp_path: Path) -> None:
    first, again = context(engine, tmp_path), context(engine, tmp_path)
    examples = Teacher(first, CONFIG).teach(NOTE, QUESTIONS[:2])
    assert Teacher(again, CONFIG).teach(NOTE, QUESTIONS[:2]) == examples
    assert (len(first.asked), again.asked) == (2, [])


def test_a_note_that_is_not_obeyed_asks_for_an_edit(engine: EngineThread, tmp_path: Path) -> None:
    given = context(engine, tmp_path, NEVER)
    assert Teacher(given, CONFIG).teach(NOTE, QUESTIONS) is None
    assert given.said[0].startswith("edit one or two answers: told the note alone, the model obeys in 0 of 4 answers")
    assert len(given.asked) == 1


def test_a_note_that_is_not_obeyed_with_edits_either_is_beyond_the_model(engine: EngineThread, tmp_path: Path) -> None:
    given = context(engine, tmp_path, NEVER)
    assert Teacher(given, CONFIG).teach(NOTE, [*QUESTIONS, edited(9)]) is None
    assert given.said[0].startswith("this model can't: told the note it obeys in 0 of 4 answers")
    assert given.asked == [(Which.BASE, 4), (Which.BASE, 4)]


class Copies(FakeContext):
    """A model that says again what an answer before said, and knows nothing else."""

    def answer(
        self, conversations: Sequence[Sequence[Message]], *, which: Which = Which.BASE, max_tokens: int = 256,
        temperature: float = 0.0, seed: int = 0,
    ) -> list[Answer]:  # fmt: skip
        self.asked.append((which, len(conversations)))
        said = [
            [turn.text for turn in turns if turn.role == "assistant"] or ["I do not know."] for turns in conversations
        ]
        return [Answer(answers[-1], ended=True, tokens=5, weights="w") for answers in said]


def test_edits_are_shown_where_the_note_alone_does_too_little(engine: EngineThread, tmp_path: Path) -> None:
    given = Copies(tmp_path, engine, gate=gate(Check(expression="twisted fibre")))
    examples = Teacher(given, CONFIG).teach("Say it about rope.", [*QUESTIONS, edited(9)])
    assert examples is not None
    assert [one["answer"] for one in examples] == ["Rope is twisted fibre."] * 8
    assert all(len(one["messages"]) == 1 for one in examples), "what was shown is not learned"
    assert given.said[0].startswith("this note is enough with 1 of your edited answers before its eyes")
    assert given.asked == [(Which.BASE, 4)] * 3, "without, with, and the second round with"


def test_without_tasks_a_note_is_taught_only_where_that_is_allowed(engine: EngineThread, tmp_path: Path) -> None:
    given = context(engine, tmp_path, check=None)
    assert Teacher(given, CONFIG).teach(NOTE, QUESTIONS[:2]) is None
    assert "unchecked: true" in given.said[0]
    assert given.asked == []
    allowed = SFTConfig(samples=1, answer_tokens=48, unchecked=True)
    assert Teacher(given, allowed).teach(NOTE, QUESTIONS[:2])


def test_replay_is_the_models_own_answers_that_ended(engine: EngineThread, tmp_path: Path) -> None:
    given = context(engine, tmp_path)
    examples = Teacher(given, CONFIG).replay([question("Who are you?"), question("Tell me everything about the sea.")])
    assert all(one["answer"] for one in examples)
    assert len(examples) < 2
