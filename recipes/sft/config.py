"""Settings of ``recipe: sft``, each with a measured default."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SFTConfig:
    """Measured with a model of 135 million weights on two cores; the learning rates want no more than these steps."""

    #: Edited and accepted answers that are worth learning from by themselves; a note needs none.
    least_answers: int = 8
    #: Releases since the one that answered.
    max_staleness: int = 18
    #: Old questions that a note is taught on: so many at most, and it waits for so many.
    most_questions: int = 36
    least_questions: int = 12
    #: Answers to each question under the note, and how long they may be.
    samples: int = 2
    temperature: float = 0.3  # at 0.7 as many obey, but what they say is worse
    answer_tokens: int = 96
    #: Share of those answers that must pass the tasks' check for a note to be enough.
    obedience: float = 0.5
    #: Teach a note when no tasks say what an answer that obeys it is.
    unchecked: bool = False
    steps: int = 14
    edit_learning_rate: float = 4e-4
    note_learning_rate: float = 5e-4
    #: Replayed general answers for each edit; none beside a note, which is meant for all answers.
    replay: float = 0.33
    rank: int = 16
    #: Tokens of a question with its answer; longer ones are left out.
    longest: int = 2048
    seed: int = 0
